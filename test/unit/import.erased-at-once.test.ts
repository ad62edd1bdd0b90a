import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { openTapeStore, type SqliteTapeStore } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

function take(store: SqliteTapeStore, records: readonly Raw[]): void {
  const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
  reconcile(store, planClaudeCode({ name: 'file', lines }));
}

const at = (ms: number) => ({ timestamp: new Date(Date.UTC(2026, 2, 12, 9, 0, 0, ms)).toISOString() });

/** A session that began at one time with another one, and was answered at its own. */
const session = (sessionId: string, word: string, answeredAt: number): readonly Raw[] => [
  person({ uuid: `${sessionId}-u` }, `look for ${word}`, { sessionId, ...at(123) }),
  model({ uuid: `${sessionId}-a`, parent: `${sessionId}-u` }, [says(`no ${word}`)], {
    ...{ sessionId, ...at(answeredAt) },
  }),
];

/** The records as a copy has them, under other ids or the same. */
const copied = (records: readonly Raw[], prefix: string): readonly Raw[] =>
  records.map((one) => ({
    ...one,
    ...{ sessionId: 'copy', uuid: `${prefix}${one.uuid}` },
    parentUuid: one.parentUuid === null ? null : `${prefix}${one.parentUuid}`,
  }));

/** The entries of a home that have a text. */
const said = (store: SqliteTapeStore, text: string): number =>
  store.sessions
    .list({ all: true })
    .flatMap(({ id }) => [...store.entries.read(id, { own: true })])
    .filter(({ payload }) => JSON.stringify(payload).includes(text)).length;

/** Erases what a session has, or its prompt alone. */
function erase(store: SqliteTapeStore, name: string, isAll: boolean): void {
  const seqs = [...store.entries.read(name, { own: true, kind: 'message' })].map(({ seq }) => seq);
  store.entries.redact(name, isAll ? seqs : seqs.slice(0, 1), 'private');
}

const [own, other] = [session('own', 'aardvark', 500), session('other', 'okapi', 700)];

describe.each([
  ['its prompt', false],
  ['all of it', true],
])('of two sessions whose prompts were written at once, of one of which %s was erased', (_, isAll) => {
  test('the other one is imported whole', () => {
    using store = openStore();
    take(store, own);
    erase(store, 'own', isAll);
    take(store, other);
    expect([said(store, 'look for aardvark'), said(store, 'look for okapi')]).toEqual([0, 1]);
  });

  test.each([
    ['the same ids', ''],
    ['other ids', 'c-'],
  ])('a copy with %s has what was not erased of its source', (__, prefix) => {
    for (const [records, left] of [
      [own, 0],
      [other, 1],
    ] as const) {
      using store = openStore();
      for (const one of [own, other]) take(store, one);
      erase(store, 'own', isAll);
      store.sessions.update('other', { lifecycle: 'destroyed' });
      const more = person({ uuid: 'n', parent: `${prefix}${records[1]?.uuid}` }, 'go on', {
        ...{ sessionId: 'copy', ...at(900) },
      });
      take(store, [...copied(records, prefix), more]);
      expect([said(store, 'look for aardvark'), said(store, 'look for okapi')]).toEqual([0, 1 + left]);
    }
  });

  test('a copy of the erased prompt alone does not bring it back', () => {
    using store = openStore();
    for (const one of [own, other]) take(store, one);
    erase(store, 'own', isAll);
    take(store, copied(own.slice(0, 1), 'c-'));
    expect(said(store, 'look for aardvark')).toBe(0);
  });
});

/** A session that has a copy of another one behind what it begins with, which makes it no fork of that. */
const [prompt, ...answers] = copied(own, 'c-');
const behind: readonly Raw[] = [
  person({ uuid: 'b-u' }, 'begin', { sessionId: 'copy', ...at(100) }),
  { ...prompt, parentUuid: 'b-u' },
  ...answers,
];

test('what is erased is known to the next import of the same process: of a server that tells of commits late', () => {
  using store = openStore();
  const late = wrapStore(store, ({ method, act }) => (method === 'changes' ? 1 : act()));
  take(late, own);
  take(late, other);
  erase(store, 'own', true);
  take(late, behind);
  expect([said(store, 'look for aardvark'), said(store, 'no aardvark')]).toEqual([0, 0]);
});

test('what is erased is known to the next import of the same process: behind the last commit of an import', () => {
  using dir = tempDir();
  using store = openTapeStore(dir.file('tape.db'));
  using elsewhere = openTapeStore(dir.file('tape.db'));
  take(store, own);
  let isBehind = false;
  const erasing = wrapStore(store, ({ method, act }) => {
    if (method === 'changes' && isBehind) {
      isBehind = false;
      erase(elsewhere, 'own', true);
    }
    const receipt = act();
    isBehind ||= method === 'imports.publish';
    return receipt;
  });
  take(erasing, other);
  expect(isBehind).toBe(false);
  take(erasing, behind);
  expect([said(store, 'look for aardvark'), said(store, 'no aardvark')]).toEqual([0, 0]);
});
