import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { acts, filesOf } from '../support/random-transcripts.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { jsonl } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

function take(store: SqliteTapeStore, records: readonly Raw[]): void {
  const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
  reconcile(store, planClaudeCode({ name: 'file', lines }));
}

/** What is said in records or entries, each text once. */
const textsIn = (value: unknown): Set<string> =>
  new Set(JSON.stringify(value).match(/"(?:ask|did|then|summary) [0-9 ]+"/g) ?? []);

const own = (store: SqliteTapeStore) =>
  store.sessions.list({ all: true }).flatMap(({ id }) => [...store.entries.read(id, { own: true })]);

const said = (store: SqliteTapeStore) => textsIn(own(store).map(({ payload }) => payload));

/** Erases what each session has, or a part of it, and returns what that said. */
function erase(store: SqliteTapeStore, isWanted: (place: number) => boolean): Set<string> {
  const erased = new Set<string>();
  for (const { id, settled } of store.sessions.list({ all: true })) {
    const entries = [...store.entries.read(id, { own: true })].filter(
      ({ kind, mark, seq }, place) =>
        (kind === 'message' || kind === 'tool-result' || mark === 'boundary') &&
        seq <= settled &&
        isWanted(place),
    );
    for (const text of textsIn(entries.map(({ payload }) => payload))) erased.add(text);
    const seqs = entries.map(({ seq }) => seq);
    if (seqs.length > 0) store.entries.redact(id, seqs, 'private');
  }
  return erased;
}

/** The first turn has an answer: of a prompt alone nothing says that a record under another id is a copy. */
const first = { what: 'turn', in: 0, at: 0, answers: 1, how: 3 } as const;

describe.each([
  ['turns and copies', ['turn', 'turn', 'turn', 'copy'], true],
  ['turns and copies whose records name few requests', ['turn', 'turn', 'turn', 'copy'], false],
  ['turns, copies and compactions', ['turn', 'turn', 'turn', 'copy', 'compact'], true],
] as const)('files of %s', (_, what, requests) => {
  test('bring back nothing of what was erased of the first, and lack nothing else', () => {
    fc.assert(
      fc.property(
        acts(what),
        fc.array(fc.nat(1_000), { minLength: 6, maxLength: 6 }),
        fc.boolean(),
        (all, order, isAll) => {
          const [source = [], ...others] = filesOf([first, ...all], { requests });
          const store = openStore();
          take(store, source);
          const number = (i: number) => order[i % order.length] ?? 0;
          const erased = erase(store, (place) => isAll || number(place) % 3 === 0);
          const rank = new Map(others.map((one, i) => [one, number(i)]));
          for (const file of others.toSorted((a, b) => (rank.get(a) ?? 0) - (rank.get(b) ?? 0)))
            take(store, file);
          const now = said(store);
          expect(erased.intersection(now)).toEqual(new Set());
          expect(textsIn([source, others]).difference(now).difference(erased)).toEqual(new Set());
          expect([...store.verify()]).toEqual([]);
        },
      ),
      { numRuns: sized(4, 12, 2_000), ...sized({ seed: 1 }, { seed: 1 }, {}) },
    );
  });
});
