import { Origins, parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';

/** How many copies there are, where there are few of them and where there are four times as many; and of branches. */
const copied = sized([50, 200], [40, 160], [300, 1_200]) as readonly [number, number];
const branched = sized([50, 200], [40, 160], [250, 1_000]) as readonly [number, number];

type Raw = { readonly [field: string]: unknown };

const usage = { output_tokens: 5 };
const said = (uuid: string, parent: string | null, text: string): readonly Raw[] => [
  person({ uuid: `${uuid}-p`, parent }, text),
  model({ uuid, parent: `${uuid}-p` }, [says(`did ${text}`)], { usage }),
];

/** Imports files one after another, as one command does it. */
function takeAll(store: SqliteTapeStore, files: readonly (readonly Raw[])[]): void {
  const origins = new Origins(store);
  for (const file of files) {
    const { records: lines } = parseJsonLines([Buffer.from(jsonl(file))]);
    reconcile(store, planClaudeCode({ name: 'file', lines }), { origins });
  }
}

/** What the import of some files takes of the processor, in milliseconds, and what it stores. */
function importOf(files: readonly (readonly Raw[])[]) {
  const store = openStore();
  const before = process.cpuUsage();
  takeAll(store, files);
  const { user, system } = process.cpuUsage(before);
  const sessions = store.sessions.list({ all: true });
  return {
    took: (user + system) / 1000,
    sessions: sessions.length,
    messages: sessions.reduce(
      (sum, { id }) => sum + [...store.entries.read(id, { own: true, kind: 'message' })].length,
      0,
    ),
    output: store.sessions.calls().reduce((sum, one) => sum + one.usage.output, 0),
  };
}

/** The same items in another order, which is the same each time. */
function shuffled<T>(items: readonly T[]): readonly T[] {
  return items
    .map((item, i) => ({ item, at: (i * 7919 + 13) % 10_007 }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/** A session with an abandoned branch, and copies of it that go on: some from their head, some from the branch. */
function family(count: number, isNamed: boolean): readonly (readonly Raw[])[] {
  const source = [
    ...said('a1', null, 'plan'),
    ...said('a2', 'a1', 'do'),
    ...said('a3', 'a1', 'do it in Rust'),
  ];
  const copies = Array.from({ length: count }, (_, i) => {
    const copied = isNamed
      ? source.map((one) => ({ ...one, forkedFrom: { sessionId: 's-1', messageUuid: one.uuid } }))
      : source;
    const own = said(`c${i}`, i % 3 === 0 ? 'a2' : 'a3', `go on ${i}`);
    return [...copied, ...own].map((one) => ({ ...one, sessionId: `copy-${i}` }));
  });
  return [source, ...copies];
}

describe.each([
  ['that their records name', true],
  ['that nothing names', false],
])('copies of one session, %s', (_, isNamed) => {
  test('cost as much as they have of their own, in any order', { timeout: 600_000 }, () => {
    importOf(family(copied[0], isNamed));
    const few = importOf(shuffled(family(copied[0], isNamed)));
    const many = importOf(shuffled(family(copied[1], isNamed)));
    // Each file has a session for its head, and one for the branch that it left.
    for (const [one, count] of [
      [few, copied[0]],
      [many, copied[1]],
    ] as const)
      expect(one).toMatchObject({
        sessions: 2 * (count + 1),
        messages: 6 + 2 * count,
        output: (3 + count) * 5,
      });
    expect(many.took / few.took).toBeLessThan(9);
  });
});

test('copies that are equal are stored once', { timeout: 600_000 }, () => {
  const copies = (count: number) =>
    Array.from({ length: count }, (_, i) =>
      [...said('a1', null, 'plan'), ...said('a2', 'a1', 'do'), ...said('a3', 'a1', 'do it in Rust')].map(
        (one) => ({ ...one, sessionId: `s-${i}` }),
      ),
    );
  importOf(copies(copied[0]));
  const few = importOf(copies(copied[0]));
  const many = importOf(copies(copied[1]));
  expect(few).toMatchObject({ sessions: 2 * copied[0], messages: 6, output: 15 });
  expect(many).toMatchObject({ sessions: 2 * copied[1], messages: 6, output: 15 });
  expect(many.took / few.took).toBeLessThan(9);
});

/** A conversation with a prompt that was typed anew at each of its turns. */
function withBranches(count: number): readonly Raw[] {
  const records: Raw[] = [...said('a0', null, 'plan')];
  for (let i = 1; i <= count; i += 1)
    records.push(...said(`b${i}`, `a${i - 1}`, `left ${i}`), ...said(`a${i}`, `a${i - 1}`, `go on ${i}`));
  return records;
}

/** A conversation that is rewound farther and farther back: each branch is left from the next one. */
function withNestedBranches(count: number): readonly Raw[] {
  const records: Raw[] = [...said('a0', null, 'plan')];
  for (let i = 1; i <= count; i += 1) records.push(...said(`a${i}`, `a${i - 1}`, `go on ${i}`));
  for (let i = count; i >= 1; i -= 1) records.push(...said(`b${i}`, `a${i - 1}`, `left ${i}`));
  return records;
}

test.each([
  ['beside each other', withBranches],
  ['of branches', withNestedBranches],
])(
  'hundreds of branches %s are each stored and counted once, in the time that they need',
  {
    timeout: 600_000,
  },
  (_, records) => {
    const own = (count: number) => ({
      sessions: count + 1,
      messages: 2 * (2 * count + 1),
      output: 5 * (2 * count + 1),
    });
    importOf([records(50)]);
    const few = importOf([records(branched[0])]);
    const many = importOf([records(branched[1])]);
    expect(few).toMatchObject(own(branched[0]));
    expect(many).toMatchObject(own(branched[1]));
    // To write them costs as much for each; to read them, something more.
    expect(many.took / few.took).toBeLessThan(11);
  },
);
