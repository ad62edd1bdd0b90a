import { mkdirSync } from 'node:fs';
import { openJournal } from '@tapedeck/graph';
import { check } from '@tapedeck/runtime';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LegalActs } from '../support/histories/legal-acts.ts';
import { Tally } from '../support/histories/tally.ts';
import { countedIds } from '../support/ids.ts';
import { disagreements } from '../support/python.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const histories = sized(20, 25, 5_000);

/** A clock that is set now and then, also back. */
function uneasyClock(): () => number {
  const random = seeded(7);
  let now = Date.UTC(2026, 10, 23, 10);
  return () => {
    now += random.chance(5) ? random.below(200_000) - 100_000 : random.below(3);
    return now;
  };
}

test('no act of a store leaves what a verification reports, in any order, in two realms', {
  timeout: 900_000,
}, async () => {
  using dir = tempDir();
  const [path, now] = [dir.file('tape.db'), uneasyClock()];
  const journal = openJournal(dir.file('session_graph.jsonl'));
  using store = openStore(path, { journal, now });
  using abroad = openStore(path, { journal, now, base: 'abroad', newId: countedIds('01JE') });
  const tally = new Tally();
  let n = 0;
  fc.assert(
    fc.property(
      fc.array(fc.noShrink(fc.nat(0x7fff_ffff)), { minLength: 5, maxLength: 60, size: 'max' }),
      (steps) => {
        n += 1;
        const acts = new LegalActs(n % 4 === 0 ? abroad : store, `h${n}`, tally);
        for (const step of steps) acts.act(seeded(step));
        for (const { id } of acts.sessions()) expect([...store.verify(id)]).toEqual([]);
      },
    ),
    { numRuns: histories, seed: 20261123 },
  );
  expect([...store.verify(), ...store.verifyDatabase()]).toEqual([]);
  const { damaged, sections } = await check(store, { graph: dir.file('session_graph.jsonl') });
  expect([sections.lineage, sections.integrity, sections.graph_file].map(({ findings }) => findings)).toEqual(
    [[], [], []],
  );
  expect(damaged).toBe(false);
  expect(disagreements(dir.path, [])).toEqual([]);
  mkdirSync(dir.file('copy'), { mode: 0o700 });
  await store.backup(dir.file('copy/tape.db'));
  expect(disagreements(dir.file('copy'), [])).toEqual([]);
  for (const what of [
    'append',
    'work',
    'rewind',
    'unrewind',
    'fork',
    'merge',
    'discard',
    'redact',
    'alias',
    'unalias',
  ])
    expect(tally.of(what), what).toBeGreaterThan(0);
  for (const what of ['task', 'archive', 'reopen', 'import', 'lease', 'append compaction', 'inbox', 'drain'])
    expect(tally.of(what), what).toBeGreaterThan(0);
});
