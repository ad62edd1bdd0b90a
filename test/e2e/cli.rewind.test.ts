import { readFileSync, writeFileSync } from 'node:fs';
import { anchor, assistant, note, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { disagreements } from '../support/python.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** `main`: two turns, at 2 to 5. */
function withTurns(): TempHome {
  const home = tempHome();
  home.session('main', user('ask 1'), assistant('One.'), user('ask 2\nin two lines'), assistant('Two.'));
  return home;
}

/** The texts that a model would be shown. */
async function shown(home: TempHome, name = 'main'): Promise<string[]> {
  const { messages } = json<{ messages: { content: { text: string }[] }[] }>(
    await home.here(['view', name, '--json']),
  );
  return messages.map(({ content }) => content.map(({ text }) => text).join(' '));
}

function script(home: TempHome, ...answers: object[]): string {
  writeFileSync(home.file('answers.json'), JSON.stringify(answers));
  return `script:${home.file('answers.json')}`;
}

test('rewind returns the message, and undo shows everything again', async () => {
  using home = withTurns();
  const done = await home.tape(['rewind', 'main@4']);
  expect(done).toMatchObject({ code: 0, stderr: '' });
  expect(done.stdout).toMatchInlineSnapshot(`
    "Rewound main to @3: 2 entries hidden, none removed (undo with: tape undo main@6)
    ask 2
    in two lines
    "
  `);
  expect(await shown(home)).toEqual(['ask 1', 'One.']);
  expect((await home.tape(['undo', 'main'])).stdout).toMatchInlineSnapshot(`
    "Undid the rewind main@6: it ends at @5, 2 entries shown again, 0 hidden (undo with: tape undo main@7)
    "
  `);
  expect(json(await home.here(['rewind', 'main@2', '--json']))).toEqual({
    session: 'main',
    seq: 8,
    to: 1,
    hidden: 4,
    shown: 0,
    forks: [],
    message: 2,
    text: 'ask 1',
  });
  expect(json(await home.here(['undo', 'main', '--json']))).toEqual({
    session: 'main',
    seq: 9,
    to: 7,
    hidden: 0,
    shown: 4,
    forks: [],
    undone: 8,
    act: 'rewind',
  });
  expect((await home.here(['rewind', 'main@4', '--quiet'])).stdout).toBe('main@10\n');
  // Hidden entries can be read.
  expect((await home.here(['log', 'main', '--oneline', '--hidden'])).stdout).toContain(
    '    5 × assistant   Two.\n',
  );
});

test('resend appends the message again; a model answers it, else the next run does', async () => {
  using home = withTurns();
  const model = script(home, { text: 'Answered anew.' }, { text: 'And again.' });
  const again = await home.here(['rewind', 'main@4', '--mode', 'resend']);
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('; run it with: tape run main\n') });
  expect(await shown(home)).toEqual(['ask 1', 'One.', 'ask 2\nin two lines']);
  expect((await home.here(['run', 'main', '--model', model])).stdout).toBe('Answered anew.\n');
  const run = ['rewind', 'main@7', '--mode', 'resend', '--model', model];
  const done = await home.tape([...run, '--json']);
  expect(done.code).toBe(0);
  expect(json(done)).toMatchObject({
    session: 'main',
    to: 6,
    hidden: 2,
    message: 7,
    resent: 10,
    run: { session: 'main', text: 'And again.', finish: 'stop', to: 11 },
  });
  expect(await shown(home)).toEqual(['ask 1', 'One.', 'ask 2\nin two lines', 'And again.']);
  const failed = await home.here(['rewind', 'main@10', '--mode', 'resend', '--model', model]);
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toContain('Rewound main to @9');
});

test('rewind refuses an invalid point, names the valid ones, and writes nothing', async () => {
  using home = withTurns();
  using store = home.open();
  store.entries.append('main', [anchor('mark')]);
  store.lineage.fork('main', { name: 'kid' });
  store.entries.append('kid', [assistant('Done.')]);
  store.lineage.merge('kid');
  store.sessions.open('empty');
  const before = home.contents();
  const refused = [
    [['main@3'], 2, 'TAPE_BAD_POINT', 'the message of that turn is main@2'],
    [['main@mark'], 2, 'TAPE_BAD_POINT', 'the message of that turn is main@4'],
    [['main@8'], 2, 'TAPE_BAD_POINT', 'the message of that turn is main@4'],
    [
      ['main'],
      2,
      'CLI_USAGE',
      'name a user message: tape rewind main@SEQ; list them with: tape log main --kind message',
    ],
    [['main@99'], 3, 'TAPE_NO_SEQ', 'list the last entries with: tape log main -n 20'],
    [
      ['main@marc'],
      3,
      'TAPE_NO_ANCHOR',
      "did you mean 'mark'? Or list anchors with: tape log main --kind anchor",
    ],
    [['mian@2'], 3, 'TAPE_NO_SESSION', "did you mean 'main'? All sessions: tape sessions"],
    [['empty@1'], 2, 'TAPE_BAD_POINT', undefined],
    [['main@4', '--model', 'a/b'], 2, 'CLI_USAGE', 'see: tape rewind --help'],
    [['main@4', '--mode', 'redo'], 2, 'CLI_USAGE', 'see: tape rewind --help'],
    [['main@4', '--mode', 'resend', '--model', 'script:none.json'], 2, 'SESSION_NO_FILE', undefined],
  ] as const;
  for (const [args, code, error, hint] of refused) {
    const result = await home.here(['rewind', ...args, '--json']);
    expect({ args, code: result.code }).toEqual({ args, code });
    const told = jsonError(result);
    expect({ args, error: told.code, hint: told.hint }).toEqual({ args, error, hint });
  }
  expect(jsonError(await home.here(['undo', 'empty', '--json']))).toMatchObject({
    code: 'SESSION_CANNOT_UNDO',
    message:
      "cannot undo 'empty': it has no rewind, and its view has no summary, no pruned outputs, and no anchor, handoff or merge of its own",
  });
  expect(home.contents()).toEqual(before);
  store.entries.append('empty', [note('import/source', { format: 'claude-code' })]);
  store.sessions.update('empty', { name: 'title' });
  expect(jsonError(await home.here(['undo', 'empty', '--json']))).toMatchObject({
    code: 'SESSION_CANNOT_UNDO',
    hint: 'take back its new name with: tape rename title empty; or the import with: tape archive empty',
  });
  store.history.rewind('main', 3);
  expect(jsonError(await home.here(['rewind', 'main@4', '--json']))).toMatchObject({
    code: 'TAPE_BAD_POINT',
    message: "cannot rewind 'main' to @4: the rewind main@9 hides it",
    hint: 'see it with: tape show main@4; or undo the rewind with: tape undo main@9',
  });
  expect((await home.here(['undo', 'main@9'])).code).toBe(0);
  expect((await shown(home)).slice(0, 4)).toEqual(['ask 1', 'One.', 'ask 2\nin two lines', 'Two.']);
  expect(jsonError(await home.here(['undo', 'main@4', '--json']))).toMatchObject({
    code: 'TAPE_BAD_POINT',
    message: "cannot undo main@4: it is no rewind, summary, pruning, anchor, handoff or merge of 'main'",
  });
});

test('a busy or archived session is neither rewound nor branched: exit 4', async () => {
  using home = withTurns();
  using store = home.open();
  const lease = store.leases.acquire('main', { id: 'another' });
  const before = home.contents();
  for (const args of [
    ['rewind', 'main@2'],
    ['undo', 'main'],
    ['branch', 'main'],
  ]) {
    const result = await home.here([...args, '--json']);
    expect(result.code).toBe(4);
    expect(jsonError(result)).toMatchObject({ code: 'SESSION_BUSY', data: { session: 'main' } });
  }
  expect(home.contents()).toEqual(before);
  store.leases.release(lease);
  store.sessions.update('main', { lifecycle: 'archived' });
  expect(await home.here(['rewind', 'main@2'])).toMatchObject({
    code: 4,
    stderr:
      "Error: cannot rewind 'main': it is archived\nHint: make it active again with: tape archive main --undo\n",
  });
  expect((await home.here(['branch', 'main'])).code).toBe(0);
});

test('a rewind calls the hooks of a configuration, and a hook that fails is a warning', async () => {
  using home = withTurns();
  const told = home.file('told.txt');
  const config = (body: string) => {
    const file = home.file(`config-${body.length}.mjs`);
    const model = script(home, { text: 'One.' });
    writeFileSync(
      file,
      `import { writeFileSync } from 'node:fs';
      export default { model: ${JSON.stringify(model)}, hooks: {
        onMessage: () => ({ snapshotId: 'before' }),
        onRewind: (rewind) => { ${body} },
      } };`,
    );
    return ['--config', file];
  };
  const writes = config(`writeFileSync(${JSON.stringify(told)}, JSON.stringify(rewind))`);
  await home.here(['run', 'main', 'ask 3', ...writes]);
  const done = await home.here(['rewind', 'main@6', ...writes, '--json']);
  expect(json(done)).toMatchObject({ to: 5, snapshot_id: 'before', text: 'ask 3' });
  expect(JSON.parse(readFileSync(told, 'utf8'))).toEqual({
    session: 'main',
    to: 5,
    message: 6,
    snapshotId: 'before',
  });
  await home.here(['undo', 'main']);
  expect(await home.here(['rewind', 'main@6', ...config("throw new Error('no git')")])).toMatchObject({
    code: 0,
    stderr: 'Warning: the hook onRewind failed: no git\n',
  });
  await home.here(['undo', 'main']);
  const failed = await home.here(['rewind', 'main@6', ...config("throw new Error('no git')"), '--json']);
  expect(json(failed)).toMatchObject({ warnings: ['the hook onRewind failed: no git'] });
  // An untrusted one that was found is not skipped: it may have hooks.
  writeFileSync(home.file('tape.config.mjs'), 'export default {}');
  expect(await home.here(['rewind', 'main@4'], { cwd: home.path })).toMatchObject({ code: 2 });
  expect(await home.here(['rewind', 'main@4', '--no-config'], { cwd: home.path })).toMatchObject({ code: 0 });
});

test('branch creates a session for people, through the point, with the JSON of a fork', async () => {
  using home = withTurns();
  const done = await home.tape(['branch', 'main@3', '--as', 'idea', '--title', 'An idea']);
  expect(done).toMatchObject({ code: 0, stderr: '' });
  expect(done.stdout).toMatchInlineSnapshot(`
    "Branched idea inherits main 1-3 (3 entries)
    Run it with: tape run idea (undo with: tape archive idea)
    "
  `);
  const facts = ['--metadata', '{"topic":"release"}', '--key', 'k'];
  expect(
    json(await home.here(['branch', 'main', '--ephemeral', ...facts, '--as', 'aside', '--json'])),
  ).toEqual({
    session: 'aside',
    tape: 'tape:aside',
    parent: 'main',
    from_anchor: null,
    base: 5,
    range: [1, 5],
    repeated: false,
  });
  expect((await home.here(['branch', 'main', '--ephemeral', ...facts, '--as', 'aside'])).stdout).toContain(
    'Already exists: aside',
  );
  expect(json(await home.here(['show', 'aside', '--json']))).toMatchObject({
    kind: 'session',
    ephemeral: true,
    metadata: { topic: 'release' },
  });
  const listed = async (...args: string[]) =>
    (await home.here([...args, '--quiet'])).stdout.split('\n').sort();
  expect(await listed('sessions')).toEqual(['', 'idea', 'main']);
  expect(await listed('sessions', '--all')).toEqual(['', 'aside', 'idea', 'main']);
  expect(await listed('children', 'main')).toEqual(['', 'aside', 'idea']);
  expect(json(await home.here(['branch', 'idea@4', '--json']))).toMatchObject({
    parent: 'idea',
    range: [1, 4],
  });
});

test('branch refuses a hidden or missing point, a point among open calls, a bad name, and bad facts', async () => {
  using home = withTurns();
  using store = home.open();
  store.history.rewind('main', 3);
  store.entries.append('main', [
    user('Go'),
    assistant([{ type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: {} }]),
  ]);
  const before = home.contents();
  const refused = [
    [['main@4'], 2, 'TAPE_BAD_POINT'],
    [['main@99'], 3, 'TAPE_NO_SEQ'],
    [['mian'], 3, 'TAPE_NO_SESSION'],
    [['main', '--as', 'main'], 4, 'TAPE_EXISTS'],
    [['main', '--as', 'a/b'], 2, 'TAPE_BAD_NAME'],
    [['main', '--metadata', '[1]'], 2, 'CLI_USAGE'],
    [['main', '--last', '2', '--since', '@2'], 2, 'CLI_USAGE'],
    [['main', '--last', '0'], 2, 'CLI_USAGE'],
    [['main', '--since', 'nowhere'], 3, 'TAPE_NO_ANCHOR'],
    [['main@3', '--since', '@7'], 2, 'TAPE_BAD_POINT'],
  ] as const;
  for (const [args, code, error] of refused) {
    const result = await home.here(['branch', ...args, '--json']);
    expect({ args, code: result.code, error: jsonError(result).code }).toEqual({ args, code, error });
  }
  expect(home.contents()).toEqual(before);
  expect(json(await home.here(['branch', 'main', '--json']))).toMatchObject({ base: 7, snapped_from: 8 });
});

test('usage shows what a branch began with, and adds it to no sum', async () => {
  using home = tempHome();
  const answer = (input: number) =>
    assistant('Hi', { model: 'm', usage: { input, output: 1, cacheRead: 0 }, cost: 0.5 });
  home.session('main', user('a'), answer(10), user('b'), answer(20));
  await home.here(['branch', 'main@3', '--as', 'idea']);
  using store = home.open();
  store.entries.append('idea', [answer(100)]);
  const { inherited, total } = json<{ inherited: unknown; total: number }>(
    await home.here(['usage', 'idea', '--json']),
  );
  expect([total, inherited]).toMatchObject([101, { steps: 1, input: 10, total: 11, cost: 0.5 }]);
  expect((await home.here(['usage', 'idea'])).stdout.split('\n').slice(1)).toEqual([
    'idea\t1\t100\t1\t0\t0\t0\t101\t101\t0.5',
    '  (inherited)\t1\t10\t1\t0\t0\t0\t11\t\t0.5',
    '',
  ]);
  expect(json(await home.here(['usage', 'main', '--tree', '--json']))).toMatchObject({
    tree: { steps: 3, total: 133 },
  });
});

test('diff shows where two sessions diverge, what each has since, and how their last answers differ', async () => {
  using home = withTurns();
  using store = home.open();
  store.lineage.fork('main', { name: 'fix' });
  store.entries.append('fix', [
    anchor('plan', { goal: 1 }),
    user('Fix it'),
    assistant('One.\nThree.\u001b[2J'),
  ]);
  const done = await home.tape(['diff', 'main', 'fix']);
  expect(done).toMatchObject({ code: 0, stderr: '' });
  expect(done.stdout).toMatchInlineSnapshot(`
    "main@5 and fix@9 differ after main@5: both have 1-5
    main@5: no further entries
    fix@9: 4 entries, 1 message, 1 answer
      state  goal

    >    8  user       Fix it
    >    9  assistant  One. Three.\\u{1b}[2J

    --- main@5
    +++ fix@9
    @@ -1,1 +1,2 @@
    -Two.
    +One.
    +Three.\\u{1b}[2J
    "
  `);
  expect((await home.here(['diff', 'main', 'fix', '--stat'])).stdout.split('\n').slice(2)).toEqual([
    'fix@9: 4 entries, 1 message, 1 answer',
    '  state  goal',
    '',
  ]);
  expect(json(await home.here(['diff', 'main@3', 'fix', '--json']))).toMatchObject({
    base: { session: 'main', seq: 3, shared: [1, 3] },
    a: { session: 'main', at: 3, entries: 0, answer: 3, recent: [] },
    b: { session: 'fix', at: 9, entries: 6, answer: 9, state: [{ key: 'goal', seq: 7 }] },
    both: [],
    answers: '--- main@3\n+++ fix@9\n@@ -1,1 +1,2 @@\n One.\n+Three.\u001b[2J\n',
  });
  expect(
    (await home.here(['diff', 'main', 'fix', '-n', '1', '--all'])).stdout.split('\n').slice(4, 7),
  ).toEqual(['', '>       1 earlier message', '>    9  assistant  One. Three.\\u{1b}[2J']);
  const stat = json(await home.here(['diff', 'main', 'fix', '--stat', '--json']));
  expect(stat).not.toHaveProperty('answers');
  expect((await home.here(['diff', 'main', 'fix', '--quiet'])).stdout).toBe('main@5\n');
  expect((await home.here(['diff', 'main', 'main'])).stdout).toBe(
    'main@5 is the same point on both sides: no differences\n',
  );
});

test('diff reports that two sessions have no common base, and what does not exist', async () => {
  using home = withTurns();
  home.session('other', user('Hello'));
  expect((await home.here(['diff', 'main', 'other'])).stdout.split('\n')[0]).toBe(
    'main@5 and other@2 have no common base: they share no entry',
  );
  expect(json(await home.here(['diff', 'main', 'other', '--json']))).toMatchObject({
    base: null,
    a: { entries: 5 },
    b: { entries: 2, answer: null },
    answers: null,
  });
  expect((await home.here(['diff', 'main', 'other', '--quiet'])).stdout).toBe('');
  expect((await home.here(['diff', 'main', 'othre'])).code).toBe(3);
  expect((await home.here(['diff', 'main@6', 'other'])).code).toBe(3);
  expect((await home.here(['diff', 'main'])).code).toBe(2);
});

test('diff prints no lines of answers that have too little in common', async () => {
  using home = tempHome();
  const lines = (word: string) => Array.from({ length: 5_000 }, (_, i) => `${word} ${i}`).join('\n');
  home.session('main', user('a'), assistant(lines('one')), user('b'), assistant(lines('two')));
  const { stdout } = await home.here(['diff', 'main@3', 'main']);
  expect(stdout.trimEnd().split('\n').at(-1)).toBe(
    'The last answers, main@3 and main@5, have too little in common',
  );
});

test('branch begins with a tail or a slice, which all that reads it understands', async () => {
  using home = withTurns();
  const branched = async (...args: string[]) => json(await home.here(['branch', ...args, '--json']));
  expect(await branched('main', '--last', '2', '--as', 'tail')).toMatchObject({
    parent: 'main',
    from_anchor: null,
    range: [4, 5],
  });
  expect(await branched('main@4', '--since', '@2', '--as', 'slice')).toMatchObject({ range: [3, 4] });
  expect(await branched('main', '--inherit', 'nothing', '--as', 'none')).toMatchObject({ range: null });
  expect((await home.here(['log', 'tail', '--oneline', '--all'])).stdout).not.toContain('ask 1');
  expect((await home.here(['view', 'tail'])).stdout).toContain('ask 2');
  expect((await home.here(['view', 'none', '--json'])).stdout).not.toContain('ask');
  expect(json(await home.here(['diff', 'main', 'tail', '--json']))).toMatchObject({
    base: { session: 'main', seq: 5 },
    a: { entries: 0 },
  });
  expect(json(await home.here(['merge', 'tail', '--result', 'done', '--json']))).toMatchObject({
    parent: 'main',
    state: 'merged',
  });
  expect((await home.here(['check'])).code).toBe(0);
  expect((await home.here(['graph', 'main'])).stdout).toContain('tail');
  expect(disagreements(home.path, [])).toEqual([]);
});
