import {
  anchor,
  assistant,
  compaction,
  type Draft,
  handoff,
  note,
  prune,
  type SqliteTapeStore,
  TapeError,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { json, jsonLines } from '../support/cli.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** What a line of a log says of its entry, without its place, its time and its hash. */
function content({ session, tape, seq, at, hash, ...rest }: Record<string, unknown>): object {
  return rest;
}

const acts = /^(?:session|fork|merge|inbox)\/|^intention$/;

const isAct = ({ kind, name }: Record<string, unknown>) => kind === 'anchor' && acts.test(String(name));

/** Copies a session through both verbs, the second run by `tape`; returns its entries and those of the copy. */
async function copied(home: TempHome, name: string, copy: string, tape: TempHome['here'] = home.tape) {
  const log = await home.here(['log', name, '--jsonl', '--own']);
  const lines = jsonLines(log);
  const done = await tape(['append', copy, '--json'], { stdin: log.stdout });
  expect(done.code, done.stderr).toBe(0);
  const again = jsonLines(await home.here(['log', copy, '--jsonl', '--own']));
  return { lines, again, done };
}

const name = fc.stringMatching(/^[a-z]{1,8}$/);
/** JSON without integers that `append` refuses to read, since their writer may have rounded them. */
const value = fc
  .jsonValue({ maxDepth: 2 })
  .filter((json) => !/(?<![.\de+-])-?\d{16,}(?![.\de])/.test(JSON.stringify(json))) as fc.Arbitrary<never>;
const meta = fc.dictionary(name, value, { maxKeys: 2 });
const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const entry: fc.Arbitrary<Draft> = fc.oneof(
  fc.tuple(text, meta).map(([said, facts]) => user(said, facts)),
  fc.tuple(text, meta).map(([said, facts]) => assistant(said, facts)),
  name.map((one) => anchor(one === 'head' ? 'a' : one, { one })),
  name.map((one) => handoff(one === 'head' ? 'a' : one, { summary: one })),
  fc.record({
    kind: fc.constantFrom('event', 'ui', 'x-app'),
    name,
    payload: value,
    meta,
  }) as fc.Arbitrary<Draft>,
);

test('a log appended to another session gives the same entries, whatever they are', async () => {
  using home = tempHome();
  let runs = 0;
  const batch = fc.array(fc.tuple(entry, fc.boolean()), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(batch, async (drafts) => {
      runs += 1;
      const [from, to] = [`from-${runs}`, `copied-to-${runs}`];
      home.session(
        from,
        ...drafts.map(([draft, hasKey], i) => (hasKey ? { ...draft, key: `key ${i}` } : draft)),
      );
      const log = jsonLines(await home.here(['log', from, '--jsonl', '--own']));
      const { again } = await copied(home, from, to, home.here);
      expect(again.map(keyless)).toEqual(log.map(keyless));
      for (const [i, line] of log.entries()) if (line.key !== undefined) expect(again[i]?.key).toBe(line.key);
    }),
    { numRuns: sized(6, 6, 1000) },
  );
});

/**
 * An entry without its key, since the copy gives one to a line that has none, so that a batch in an inbox is not repeated; and
 * without the view of a model call, of which the copy has the policy alone.
 */
function keyless(line: Record<string, unknown>): object {
  const { key, meta, ...rest } = content(line) as Record<string, unknown>;
  const { view, ...facts } = meta as Record<string, unknown>;
  return { ...rest, meta: facts };
}

test('the session of the demo is copied but for its start and its merges; a repeat adds nothing', async () => {
  using home = tempHome();
  expect((await home.here(['demo', '--home', home.path])).code).toBe(0);
  const { lines, again, done } = await copied(home, 'main', 'main-copy-of-demo');
  expect(done.stderr).toContain('Left out 3 entries that only an act writes\n');
  expect(again.slice(1).map(keyless)).toEqual(lines.filter((line) => !isAct(line)).map(keyless));
  const log = await home.here(['log', 'main', '--jsonl', '--own', '--role', 'user']);
  const keyed = jsonLines(log).filter(({ key }) => key !== undefined);
  const stdin = keyed.map((line) => `${JSON.stringify(line)}\n`).join('');
  expect(json(await home.tape(['append', 'main-copy-of-demo', '--json'], { stdin }))).toMatchObject({
    added: 0,
    repeated: keyed.length,
  });
  expect(keyed.length).toBeGreaterThan(0);
  const children = await home.here(['children', 'main', '--quiet']);
  for (const child of children.stdout.trim().split('\n')) {
    const whole = (await home.here(['log', child, '--jsonl'])).stdout;
    expect((await home.here(['append', `copy-of-${child}`], { stdin: whole })).code).toBe(0);
    using store = home.open();
    expect(shown(store, `copy-of-${child}`)).toBe(shown(store, child));
  }
  expect((await home.here(['check'])).code).toBe(0);
});

test('calls and results are copied as they are', async () => {
  using home = tempHome();
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'read', input: { path: 'a' } };
  home.session('calls', user('Read it.'), assistant([call]), toolResult(call, 'it'));
  const { lines, again } = await copied(home, 'calls', 'other');
  expect(again.map(keyless)).toEqual(lines.map(keyless));
});

/** The messages of a view. */
function shown(store: SqliteTapeStore, session: string): string {
  return JSON.stringify(view([...store.views.entries(session)]).messages);
}

const chosen = { a: fc.nat(), b: fc.nat() };
const turns = [
  ...['say', 'say', 'call', 'call', 'anchor', 'handoff', 'compact', 'prune', 'omit'],
  ...['rewind', 'undo', 'redact', 'fork', 'since', 'merge'],
] as const;
const turn = fc.record({ does: fc.constantFrom(...turns), ...chosen });

/** Does what an agent and its user do with a session; what is refused changes nothing. Returns the sessions. */
function act(store: SqliteTapeStore, name: string, all: readonly { does: string; a: number; b: number }[]) {
  const sessions = [name];
  store.sessions.open(name);
  for (const [i, { does, a, b }] of all.entries()) {
    const session = sessions[a % sessions.length] ?? name;
    const { head = 1, parent } = store.sessions.find(session) ?? {};
    const seq = 1 + (b % head);
    const add = (...drafts: Draft[]) => store.entries.append(session, drafts);
    const call = { toolCallId: `c${i}`, toolName: 'read' };
    const acts: Record<string, () => unknown> = {
      say: () => add(user(`Said ${i}`), assistant(`Answer ${i}`)),
      call: () =>
        add(
          assistant([toolCall(call.toolCallId, 'read', { i }), toolCall(`d${i}`, 'list', {})]),
          toolResult({ toolCallId: `d${i}`, toolName: 'list' }, `listed ${i}`),
          toolResult(call, `read ${i}`),
        ),
      anchor: () => add(anchor('here', { summary: `State ${i}`, i })),
      handoff: () => add(handoff('next', { summary: `Handed ${i}` }, b % 2 === 0 ? {} : { keepFrom: seq })),
      compact: () => add(compaction({ summary: `Summary ${i}`, range: [1, seq] }, { keepFrom: seq })),
      prune: () => {
        const results = [...store.entries.read(session, { kind: 'tool-result' })];
        const { seq: at = 1 } = results[b % Math.max(1, results.length)] ?? {};
        return add(prune([{ seq: at, toolCallId: 'c', tokens: 5 }], { trigger: 'manual' }));
      },
      omit: () => add(note('context/omitted', { entries: [seq, 1 + (a % head)] })),
      rewind: () => store.history.rewind(session, seq),
      undo: () => store.history.unrewind(session),
      redact: () => store.entries.redact(session, seq, 'test'),
      fork: () => store.lineage.fork(session, { name: `${name}-${i}`, intention: { nextSteps: `Do ${i}` } }),
      since: () =>
        store.lineage.fork(session, { name: `${name}-${i}`, inherit: { since: b % 2 === 0 ? 'here' : seq } }),
      merge: () => parent !== undefined && store.lineage.merge(session),
    };
    try {
      acts[does]?.();
      if (does === 'fork' || does === 'since') sessions.push(`${name}-${i}`);
    } catch (error) {
      if (!(error instanceof TapeError)) throw error;
    }
  }
  return sessions;
}

test('the copy of a whole log has the same view, whatever rewinds, boundaries, prunings, forks, merges and erasures it has', async () => {
  using home = tempHome();
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { maxLength: 14 }), fc.boolean(), async (all, each) => {
      runs += 1;
      using store = home.open();
      for (const session of act(store, `s${runs}`, all)) {
        const { stdout } = await home.here(['log', session, '--jsonl']);
        const before = shown(store, session);
        const copy = `copy-of-${session}`;
        const args = ['append', copy, ...(each ? ['--each'] : [])];
        const done = await home.here(args, { stdin: stdout });
        // A session that has only its start has nothing to copy.
        if (done.stderr.includes('no lines but those') || store.sessions.find(copy) === undefined) continue;
        expect(done, `${done.stderr}${stdout}`).toMatchObject({ code: 0 });
        expect(shown(store, copy)).toBe(before);
        // The copy of the copy has all entries of it.
        const log = jsonLines(await home.here(['log', copy, '--jsonl']));
        const again = await copied(home, copy, `again-${session}`, home.here);
        expect(again.again.map(placeless)).toEqual(log.map(placeless));
      }
    }),
    {
      numRuns: sized(3, 4, 2_000),
      seed: Number(process.env.TAPEDECK_SEED ?? 2073023779),
      // A rewind of a fork to its very start, which hides what it was asked.
      examples: [
        [
          [
            { does: 'fork', a: 0, b: 0 },
            { does: 'rewind', a: 1, b: 1 },
          ],
          false,
        ],
        // A fork is compacted with a tail that reaches back behind its handoff.
        [
          [
            { does: 'fork', a: 0, b: 0 },
            { does: 'say', a: 1, b: 0 },
            { does: 'handoff', a: 1, b: 0 },
            { does: 'say', a: 1, b: 0 },
            { does: 'compact', a: 1, b: 4 },
          ],
          true,
        ],
      ],
    },
  );
  using store = home.open();
  expect([...store.verify()]).toEqual([]);
}, 600_000);

/** An entry without its key and without its place: positions of the copies of whole logs are equal. */
function placeless(line: Record<string, unknown>): object {
  const { tape, session, ...rest } = keyless(line) as Record<string, unknown>;
  return rest;
}

test('the copy of a fork shows its task once, also where a tail reaches back behind an earlier boundary', async () => {
  using home = tempHome();
  using store = home.open();
  store.sessions.open('main');
  store.lineage.fork('main', { name: 'fork', intention: { nextSteps: 'Do it.' } });
  const say = (text: string) => [user(text), assistant(`${text}, too`)];
  const compact = (summary: string, keepFrom: number) => compaction({ summary, range: [1, 4] }, { keepFrom });
  const steps: (readonly Draft[] | number)[] = [
    [...say('four'), handoff('next', { summary: 'six' }), ...say('seven')],
    [compact('Behind the handoff.', 5), ...say('ten')],
    [compact('Behind the task.', 2), ...say('thirteen')],
    // The handoff begins the view again.
    8,
    [compact('From the first message on.', 4)],
    // The task itself is rewound.
    2,
    [compact('From what is hidden on.', 5), ...say('nineteen')],
  ];
  for (const [i, step] of steps.entries()) {
    if (typeof step === 'number') store.history.rewind('fork', step);
    else store.entries.append('fork', step);
    const stdin = (await home.here(['log', 'fork', '--jsonl'])).stdout;
    const done = await home.here(['append', `copy-${i}`, ...(i % 2 === 0 ? [] : ['--each'])], { stdin });
    expect(done.code, done.stderr).toBe(0);
    expect(shown(store, `copy-${i}`)).toBe(shown(store, 'fork'));
    expect(shown(store, 'fork').split('Do it.')).toHaveLength(2);
  }
});

test('a rewind stays one in the copy: what it hides is there, and can be shown again', async () => {
  using home = tempHome();
  home.session('main', user('one'), assistant('two'), user('three'));
  home.session('other', user('Before.'), assistant('Yes.'));
  expect((await home.here(['rewind', 'main@4'])).code).toBe(0);
  const stdin = (await home.here(['log', 'main', '--jsonl'])).stdout;
  const key = ['--key', 'k'];
  expect(json(await home.here(['append', 'other', ...key, '--json'], { stdin }))).toMatchObject({
    from: 4,
    to: 7,
    added: 4,
  });
  const [rewind] = jsonLines(await home.here(['log', 'other', '--kind', 'rewind', '--jsonl']));
  expect(rewind).toMatchObject({ seq: 7, ref: 5, payload: { to: 5 } });
  // A repeat adds nothing, also when more was said since.
  {
    using store = home.open();
    store.entries.append('other', [user('More.')]);
  }
  expect(json(await home.here(['append', 'other', ...key, '--json'], { stdin }))).toMatchObject({
    added: 0,
    repeated: 4,
  });
  expect((await home.here(['undo', 'other@7'])).code).toBe(0);
  expect((await home.here(['log', 'other'])).stdout).toContain('three');
});

test('what was erased is copied as views show it, and said; a call whose result was erased does not run again', async () => {
  using home = tempHome();
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'read', input: { path: 'a' } };
  home.session('main', user('Read it.'), assistant([call]), toolResult(call, 'it'), user('My key is k.'));
  for (const point of ['main@4', 'main@5'])
    expect((await home.here(['redact', point, '--reason', 'private'])).code).toBe(0);
  const stdin = (await home.here(['log', 'main', '--jsonl'])).stdout;
  const done = await home.here(['append', 'other'], { stdin });
  expect(done.code).toBe(0);
  expect(done.stderr).toContain('2 entries have no content: views of the copy show as little of them\n');
  using store = home.open();
  expect(shown(store, 'other')).toBe(shown(store, 'main'));
  const { head, settled } = store.sessions.find('other') ?? {};
  expect(settled).toBe(head);
});

test.each([0, 1])(
  'a copy prunes the outputs that the log prunes, also beside an erased result: %i of 2',
  async (erased) => {
    using home = tempHome();
    const ids = ['c1', 'c2'];
    const calls = ids.map((id) => toolCall(id, 'read', { id }));
    const results = ids.map((toolCallId) =>
      toolResult({ toolCallId, toolName: 'read' }, `output of ${toolCallId}`),
    );
    const pruned = ids.map((toolCallId, i) => ({ seq: 4 + i, toolCallId, tokens: 5 }));
    home.session('main', user('Read.'), assistant(calls), ...results, prune(pruned, { trigger: 'manual' }));
    expect((await home.here(['redact', `main@${4 + erased}`, '--reason', 'private'])).code).toBe(0);
    await copied(home, 'main', 'other', home.here);
    using store = home.open();
    expect(shown(store, 'other')).toBe(shown(store, 'main'));
    expect(shown(store, 'other')).toContain('output pruned');
  },
);

test.each([
  ['{"kind":"rewind","payload":{"to":1}}', 'a rewind is a line of a log, or an act of its own: tape rewind'],
  [
    '{"kind":"rewind","mark":"rewind","payload":{"to":1},"seq":3,"hash":"h","tape":"t:a"}',
    'must have a "ref"',
  ],
  [
    '{"kind":"rewind","ref":3,"payload":{"to":3},"seq":3,"hash":"h","tape":"t:a"}',
    '"ref" must be a position before',
  ],
  ['{"kind":"event","payload":{},"hash":"h","tape":"t:a"}', '"seq" must be a position'],
])('append refuses the line %s', async (line, why) => {
  using home = tempHome();
  home.session('main');
  const before = home.contents();
  for (const name of ['main', 'other']) {
    const result = await home.here(['append', name], { stdin: `{"content":"x"}\n${line}\n` });
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toContain(`line 2: ${why.startsWith('must') ? 'a rewind ' : ''}${why}`);
  }
  expect(home.contents()).toEqual(before);
});

test('an integer that its writer may have rounded is refused with its line', async () => {
  using home = tempHome();
  home.session('main', { kind: 'x-app', payload: 2 ** 53 });
  const stdin = (await home.here(['log', 'main', '--jsonl'])).stdout;
  const result = await home.tape(['append', 'other'], { stdin });
  expect(result).toMatchObject({ code: 2, stdout: '' });
  expect(result.stderr).toContain('line 2: the number 9007199254740992 cannot be stored exactly');
});
