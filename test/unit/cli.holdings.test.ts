import { holdingsOf, inTurn } from '@tapedeck/cli/internal';
import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { expect, test, vi } from 'vitest';
import { openStore } from '../support/store.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

function take(store: SqliteTapeStore, records: readonly Raw[]): void {
  const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
  reconcile(store, planClaudeCode({ name: 'file', lines }));
}

/** What the sessions of a home say, but for names of records. */
function saidIn(store: SqliteTapeStore): string {
  const entries = store.sessions
    .list({ all: true })
    .flatMap(({ id }) => [...store.entries.read(id, { own: true })]);
  return JSON.stringify(entries.map(({ payload }) => payload));
}

const turn = (session: string, prefix: string): readonly Raw[] => [
  { ...person({ uuid: `${prefix}u1` }, 'aardvark'), sessionId: session },
  { ...model({ uuid: `${prefix}a1`, parent: `${prefix}u1` }, [says('zebra')]), sessionId: session },
];

test.each([0, 1, 2, 3])(
  'what is erased of a forgotten source is known again by a process that goes on after %s erasures of one that was killed',
  async (count) => {
    using store = openStore();
    take(store, turn('s-1', ''));
    // What is forgotten has it from the session of which it is a copy; a third one has it under other ids.
    const forkedFrom = { sessionId: 's-1' };
    take(store, [
      ...turn('s-2', '').map((record) => ({ ...record, forkedFrom })),
      { ...person({ uuid: 'u2', parent: 'a1' }, 'giraffe'), sessionId: 's-2' },
    ]);
    take(store, turn('s-3', '3.').slice(0, 1));
    const holdings = async () => {
      const { look } = await holdingsOf(store, [{ tool: 'claude-code', main: 's-2' }], () => false);
      return inTurn(look()).filter(({ seqs }) => seqs.length > 0);
    };
    expect(await holdings()).toHaveLength(3);
    for (const { id, seqs } of (await holdings()).slice(0, count))
      store.entries.redact(id, seqs, 'forgotten');
    for (const { id, seqs } of await holdings()) store.entries.redact(id, seqs, 'forgotten');
    expect(saidIn(store)).not.toMatch(/aardvark|zebra|giraffe/);
    expect([...store.verify()]).toEqual([]);
  },
);

test('a copy under other ids that appears while a source is forgotten is known by what the source had said', async () => {
  using store = openStore();
  const { look } = await holdingsOf(store, [{ tool: 'claude-code', main: 's-1' }], () => false);
  take(store, turn('s-1', ''));
  const erase = () => {
    for (const { id, seqs } of inTurn(look()))
      if (seqs.length > 0) store.entries.redact(id, seqs, 'forgotten');
  };
  // Another process reads what is erased, and writes the copy behind the first erasure.
  using other = openStore();
  take(other, turn('s-3', '3.'));
  const [own] = other.sessions.list();
  const drafts = [...other.entries.read(own?.id ?? '', { own: true })].slice(1);
  erase();
  store.sessions.open('s-3');
  store.entries.append(
    's-3',
    drafts.map(({ kind, name, payload, meta, key = '' }) => ({
      ...{ kind, payload, meta, key: key.replace(/^u:/, '') },
      ...(name !== undefined && { name }),
    })),
  );
  expect(saidIn(store)).toContain('aardvark');
  erase();
  expect(saidIn(store)).not.toMatch(/aardvark|zebra/);
});

test('a later look reads what is forgotten, and of other sessions those alone that have more since', async () => {
  using store = openStore();
  for (const name of ['s-1', 's-2', 's-3', 's-4']) take(store, turn(name, `${name}.`));
  take(store, [{ ...person({ uuid: 'u' }, 'giraffe'), sessionId: 's-5' }]);
  const { look } = await holdingsOf(store, [{ tool: 'claude-code', main: 's-5' }], () => false);
  const idOf = (name: string) => store.sessions.find(name)?.id;
  expect(look().filter(({ seqs }) => seqs.length > 0)).toMatchObject([{ session: 's-5' }]);
  take(store, [
    ...turn('s-2', 's-2.'),
    { ...person({ uuid: 'u', parent: 's-2.a1' }, 'giraffe'), sessionId: 's-2' },
  ]);
  const read = vi.spyOn(store.entries, 'read');
  expect(look().filter(({ seqs }) => seqs.length > 0)).toMatchObject([
    { session: 's-5' },
    { session: 's-2' },
  ]);
  expect(new Set(read.mock.calls.map(([id]) => id))).toEqual(new Set([idOf('s-2'), idOf('s-5')]));
});
