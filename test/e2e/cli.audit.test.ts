import { readFileSync, writeFileSync } from 'node:fs';
import { assistant, processOwner, toolCall, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** `main` with delegated children in every state: one merged, one not, one cut off, one that waits. */
function withChildren(): TempHome {
  const home = tempHome();
  home.session('main', user('Go'));
  using store = home.open();
  for (const name of ['home', 'done', 'cut', 'asks']) {
    store.lineage.fork('main', { name, deliver: 'merge' });
    store.sessions.update(name, { task: 'running' });
    store.entries.append(name, [assistant(`${name} says so.`, { run: 'r' })]);
  }
  for (const name of ['home', 'done']) store.sessions.update(name, { task: 'completed' });
  store.lineage.merge('home');
  store.entries.append('asks', [
    assistant([toolCall('c1', 'pay', {})], { run: 'r' }),
    {
      kind: 'event',
      name: 'run/waiting',
      payload: { run: 'r', calls: [{ toolCallId: 'c1', toolName: 'pay', for: 'approval' }] },
    },
  ]);
  return home;
}

test('audit prints one line for each finding, with the next step', async () => {
  using home = withChildren();
  const before = home.contents();
  const { stdout, stderr, code } = await home.here(['audit']);
  expect([code, stderr]).toEqual([1, '']);
  expect(stdout.split('\n')).toEqual([
    "result-not-merged: 'done' has ended (completed), and is neither merged nor discarded (next: tape merge done)",
    "children-not-terminal: 'cut' was interrupted, and no process runs it (next: tape recover cut)",
    "children-not-terminal: 'asks' waits for approval of call 'c1' of 'pay' (next: tape approve asks)",
    '3 findings in 5 sessions',
    '',
  ]);
  // A home that was named is named again: a command without it would look at another one.
  const named = await home.here(['audit', '--home', home.path]);
  expect(named.stdout).toContain(`(next: tape merge done --home ${home.path})`);
  for (const verb of ['audit', 'check']) {
    const { stdout: found } = await home.here([verb, '--home', home.path, '--json']);
    expect(found).toContain(`"next":"tape recover cut --home ${home.path}"`);
  }
  expect(json(await home.here(['audit', '--json']))).toEqual({
    ok: false,
    sessions: 5,
    findings: [
      {
        code: 'result-not-merged',
        session: 'done',
        seq: null,
        message: expect.any(String),
        next: 'tape merge done',
      },
      {
        code: 'children-not-terminal',
        session: 'cut',
        seq: null,
        message: expect.any(String),
        next: 'tape recover cut',
      },
      {
        code: 'children-not-terminal',
        session: 'asks',
        seq: 5,
        message: expect.any(String),
        next: 'tape approve asks',
      },
    ],
  });
  expect(await home.here(['audit', '--quiet'])).toEqual({ stdout: 'incomplete\n', stderr: '', code: 1 });
  expect(home.contents()).toEqual(before);
});

test('audit finds nothing after its advice is followed', async () => {
  using home = withChildren();
  await home.here(['merge', 'done']);
  writeFileSync(home.file('answers.json'), '[{"text":"Asked."},{"text":"Then not."}]');
  const model = `script:${home.file('answers.json')}`;
  expect(await home.here(['approve', 'asks', '--deny', '--model', model])).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/\nMerged asks into main@\d+\n$/),
  });
  expect(await home.here(['recover', 'cut', '--abort'])).toMatchObject({ code: 0 });
  expect(await home.here(['audit'])).toEqual({
    stdout: 'ok: 5 sessions, all work is finished and merged\n',
    stderr: '',
    code: 0,
  });
  expect(await home.here(['audit', 'main', '--quiet'])).toEqual({ stdout: 'ok\n', stderr: '', code: 0 });
});

test('audit NAME reports the session and its descendants', async () => {
  using home = withChildren();
  expect(json(await home.here(['audit', 'home', '--json']))).toEqual({ ok: true, sessions: 1, findings: [] });
  expect(await home.here(['audit', 'mian'])).toMatchObject({ code: 3, stdout: '' });
  expect(await home.here(['audit', '--home', home.file('nowhere')])).toMatchObject({ code: 3, stdout: '' });
});

test('audit reports a line missing from the graph file, until doctor rewrites the file', async () => {
  using home = withChildren();
  const lines = readFileSync(home.graph, 'utf8').split('\n');
  const at = lines.findIndex((line) => line.includes('"type":"fork"'));
  writeFileSync(home.graph, lines.toSpliced(at, 1).join('\n'));
  const { stdout } = await home.here(['audit', 'home']);
  expect(stdout).toContain(`line ${at + 1} of the lineage, 'fork' of 'home', is not in the graph file`);
  expect(stdout).toContain('(next: tape doctor --fix)');
  await home.here(['doctor', '--fix']);
  expect((await home.here(['audit', 'home'])).code).toBe(0);
});

test('audit of a damaged home exits with 5', async () => {
  using home = withChildren();
  writeFileSync(home.db, 'no database at all, and long enough to be taken for a header'.repeat(20));
  expect(await home.here(['audit'])).toMatchObject({ code: 5, stdout: '' });
});

test('trace prints a tree back to the source of an entry, and forward to where it was merged', async () => {
  using home = withChildren();
  {
    using store = home.open();
    store.lineage.fork('home', { name: 'deep' });
    store.entries.append('deep', [assistant('Deep.')]);
    store.lineage.merge('deep');
    store.lineage.merge('home', { text: 'Both of us.' });
  }
  const { stdout } = await home.here(['trace', 'main@6']);
  expect(stdout).toBe(
    [
      'main@6 message',
      '  from home 5-6, merged at main@5, completed',
      '    from deep 5-6, merged at home@5, completed: the text of deep@6',
      '  not merged into any session',
      '',
    ].join('\n'),
  );
  expect((await home.here(['trace', 'deep@6'])).stdout).toBe(
    ['deep@6 message', '  merged into home@5 (5-6)', '    merged into main@5 (5-6)', ''].join('\n'),
  );
  expect((await home.here(['trace', 'done@2'])).stdout).toBe(
    [
      'done@2 message, of main',
      '  not merged into any session',
      '  inherited by home, done, cut, asks, deep',
      '',
    ].join('\n'),
  );
  expect((await home.here(['trace', 'main@6', '--quiet'])).stdout).toBe('deep@6\n');
  expect((await home.here(['trace', 'deep@6', '--quiet'])).stdout).toBe('home@5\nmain@5\n');
  expect(json(await home.here(['trace', 'main@6', '--json']))).toEqual({
    session: 'main',
    owner: 'main',
    seq: 6,
    kind: 'message',
    from: [
      {
        session: 'home',
        mark: { session: 'main', seq: 5 },
        status: 'completed',
        state: 'merged',
        range: [5, 6],
        text: null,
        from: [
          {
            session: 'deep',
            mark: { session: 'home', seq: 5 },
            status: 'completed',
            state: 'merged',
            range: [5, 6],
            text: { seq: 6, kind: 'message' },
            from: [],
          },
        ],
      },
    ],
    into: [],
    inherited_by: [],
    inherited_count: 0,
  });
});

test('trace refuses a place that does not exist', async () => {
  using home = withChildren();
  for (const [place, code, exit] of [
    ['mian@2', 'TAPE_NO_SESSION', 3],
    ['main@99', 'TAPE_NO_SEQ', 3],
    ['main@plan', 'TAPE_NO_ANCHOR', 3],
    ['mian', 'TAPE_NO_SESSION', 3],
    ['main', 'CLI_USAGE', 2],
  ] as const) {
    const refused = await home.here(['trace', place, '--json']);
    expect([place, refused.code, jsonError(refused).code]).toEqual([place, exit, code]);
  }
});

test('discard writes a receipt on the parent, repeats it, and refuses after a merge', async () => {
  using home = withChildren();
  const discarded = json(await home.here(['discard', 'done', '--reason', 'Too late.', '--json']));
  expect(discarded).toMatchObject({
    parent: 'main',
    child: 'done',
    state: 'discarded',
    seq: 5,
    repeated: false,
  });
  const mark = json(await home.here(['show', 'main@5', '--json']));
  expect(mark).toMatchObject({ payload: { state: { strategy: 'discard', reason: 'Too late.' } } });
  const after = home.contents();
  expect(json(await home.here(['discard', 'done', '--json']))).toEqual({ ...discarded, repeated: true });
  expect(home.contents()).toEqual(after);
  const merged = await home.here(['discard', 'home', '--json']);
  expect([merged.code, jsonError(merged)]).toMatchObject([
    4,
    { code: 'TAPE_CONFLICT', message: "cannot discard 'home': it is already merged" },
  ]);
  // A child that waits for an answer is given up, with its call.
  expect(await home.here(['discard', 'asks', '--quiet'])).toMatchObject({ code: 0, stdout: 'main@6\n' });
  expect(
    json<{ findings: { session: string }[] }>(await home.here(['audit', '--json'])).findings,
  ).toMatchObject([{ session: 'cut' }]);
});

test('discard with a busy parent goes through the inbox of the parent', async () => {
  using home = withChildren();
  using store = home.open();
  const lease = store.leases.acquire('main', processOwner('other-owner'));
  const queued = await home.here(['discard', 'done', '--no-wait', '--json']);
  expect([queued.code, json(queued)]).toMatchObject([6, { state: 'queued', seq: null }]);
  store.inbox.drain(lease);
  expect(store.sessions.find('done')?.delivery).toBe('discarded');
});

test('recover reports the merge of an inbox as its dry run does', async () => {
  using home = withChildren();
  {
    using store = home.open();
    store.inbox.post('main', {
      body: { type: 'merge', draft: { child: 'done' } },
      source: 'agent',
      key: 'merge',
    });
  }
  const names = async (...args: string[]) => {
    const { merged, aborted } = json(await home.here(['recover', '--abort', '--json', ...args])) as {
      merged: string[];
      aborted: string[];
    };
    return { merged, aborted };
  };
  const shown = await names('--dry-run');
  expect(shown.merged).toContain('done');
  expect(await names()).toEqual(shown);
});
