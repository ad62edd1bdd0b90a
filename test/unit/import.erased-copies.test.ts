import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { acts, filesOf } from '../support/random-transcripts.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

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

test('a copy of a resumed session that was erased, which begins at a compaction behind a result, is imported', () => {
  using store = openStore();
  const at = (second: number) => ({ timestamp: `2026-03-12T09:00:${second + 10}.017Z` });
  const turn = (of: string, parent: string | null, second: number, id = of) => [
    person({ uuid: `u${id}`, parent }, `ask ${of}`, at(second)),
    model({ uuid: `a${id}`, parent: `u${id}`, id: `m${of}` }, [says(`did ${of}`)], {
      ...at(second + 1),
      usage: { output_tokens: 2 },
    }),
  ];
  take(store, turn('1', null, 0, '0'));
  const boundary = {
    ...{ type: 'system', subtype: 'compact_boundary', uuid: 'b', parentUuid: null, logicalParentUuid: 'a2' },
    ...{ sessionId: 's-1', compactMetadata: { trigger: 'manual', preTokens: 5 }, ...at(8) },
  };
  const behind = [
    boundary,
    person({ uuid: 's', parent: 'b' }, 'summary', { isCompactSummary: true, ...at(9) }),
    ...turn('3', 's', 10),
  ];
  // The first turn under other ids.
  const resumed = [
    ...turn('1', null, 0),
    person({ uuid: 'u2', parent: 'a1' }, 'ask 2', at(4)),
    model({ uuid: 'c2', parent: 'u2' }, [calls('toolu_1')], at(5)),
    person({ uuid: 'r2', parent: 'c2' }, [returns('toolu_1')], at(6)),
    model({ uuid: 'a2', parent: 'r2' }, [says('did 2')], at(7)),
    ...behind,
  ].map((one) => ({ ...one, sessionId: 's-2' }));
  take(store, resumed);
  const entries = [...store.entries.read('s-2', { own: true })].filter(
    ({ meta }) => meta.source === 'import',
  );
  store.entries.redact(
    's-2',
    entries.map(({ seq }) => seq),
    'private',
  );
  const copy = (...more: string[]) =>
    [...behind, ...more.flatMap((of, n) => turn(of, n === 0 ? 'a3' : `a${more[n - 1]}`, 20 + 2 * n))].map(
      (one) => ({ ...one, sessionId: 's-3', session_id: 's-2' }),
    );
  for (const more of [['4'], ['4', '5']]) {
    take(store, copy(...more));
    const shown = JSON.stringify([...store.views.entries('s-3', { policy: 'full' })]);
    expect(more.every((of) => shown.includes(`did ${of}`))).toBe(true);
    expect(shown).not.toMatch(/summary"|did 3|ask 2/);
  }
  expect([...store.verify()]).toEqual([]);
});
