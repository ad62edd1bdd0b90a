import { anchor, assistant, type Draft, handoff, toolResult, user } from '@tapedeck/tape';
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
    { numRuns: sized(10, 30, 1000) },
  );
});

/** An entry without its key: the copy gives one to a line that has none, so that a batch in an inbox is not repeated. */
function keyless(line: Record<string, unknown>): object {
  const { key, ...rest } = content(line) as Record<string, unknown>;
  return rest;
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
  expect((await home.here(['check'])).code).toBe(0);
});

test('calls and results are copied as they are', async () => {
  using home = tempHome();
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'read', input: { path: 'a' } };
  home.session('calls', user('Read it.'), assistant([call]), toolResult(call, 'it'));
  const { lines, again } = await copied(home, 'calls', 'other');
  expect(again.map(keyless)).toEqual(lines.map(keyless));
});

test('a log with a rewind is refused, and creates no session', async () => {
  using home = tempHome();
  home.session('main', user('one'), assistant('two'), user('three'));
  expect((await home.here(['rewind', 'main@2'])).code).toBe(0);
  const before = home.contents();
  const stdin = (await home.here(['log', 'main', '--jsonl'])).stdout;
  const result = await home.tape(['append', 'other'], { stdin });
  expect(result.code).toBe(2);
  expect(result.stderr).toMatch(/the rewind refers to position \d+ of its own tape/);
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
