import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { type SqliteTapeStore, view } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

const usage = { output_tokens: 10 };
const turn = (n: number, parent: string | null): readonly Raw[] => [
  person({ uuid: `u${n}`, parent }, `ask ${n}`),
  model({ uuid: `a${n}`, parent: `u${n}`, id: `msg-${n}` }, [says(`answer ${n}`)], { usage }),
];

/** A session whose second prompt names a parent that is not in the file. */
const source = [...turn(1, null), ...turn(2, 'lost'), ...turn(3, 'a2')];
const copyOf = (records: readonly Raw[], session = 's-2'): readonly Raw[] =>
  records.map((record) => ({ ...record, sessionId: session }));
const renamed = (id: unknown) => (typeof id === 'string' ? `other-${id}` : id);

/** The program goes on from what it could load, which begins behind the lost parent. */
const copies: Readonly<{ [way: string]: readonly Raw[] }> = {
  'under the same ids': copyOf([...source.slice(2), ...turn(4, 'a3')]),
  'under other ids': copyOf([...source.slice(2), ...turn(4, 'a3')]).map((record) => ({
    ...record,
    uuid: renamed(record.uuid),
    parentUuid: renamed(record.parentUuid),
  })),
};

function take(store: SqliteTapeStore, records: readonly Raw[]): void {
  const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
  reconcile(store, planClaudeCode({ name: 'file', lines }));
}

const texts = (store: SqliteTapeStore, session: string): unknown[] =>
  view(store.views.entries(session)).messages.map(({ content }) => content[0]?.text);

function stateOf(store: SqliteTapeStore): unknown {
  const output = store.sessions.calls().reduce((sum, call) => sum + call.usage.output, 0);
  const sessions = store.sessions.list({ all: true }).map((info) => ({
    session: info.session,
    above: treeParentOf(info).parent,
    evidence: info.link?.parent === undefined ? undefined : info.link.evidence,
    texts: texts(store, info.session),
  }));
  return { output, sessions: sessions.sort((a, b) => (a.session < b.session ? -1 : 1)) };
}

const said = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => [`ask ${from + i}`, `answer ${from + i}`]).flat();

describe.each(Object.entries(copies))(
  'a copy %s of what follows a lost parent, which names no source',
  (_, copy) => {
    const evidence = 'it begins with 4 entries of that, before which that has 2';
    const expected = {
      output: 40,
      sessions: [
        { session: 's-1', above: undefined, evidence: undefined, texts: said(1, 3) },
        { session: 's-2', above: 's-1', evidence, texts: said(2, 4) },
      ],
    };

    test.each([
      ['first', [source, copy]],
      ['last', [copy, source]],
    ])('is below its source, which comes %s, and counts no token again', (_, files) => {
      const store = openStore();
      for (const file of [...files, ...files]) take(store, file);
      expect(stateOf(store)).toEqual(expected);
      expect([...store.verify()]).toEqual([]);
    });

    test('has the same place when both grow a record at a time', () => {
      for (const files of [
        [source, copy],
        [copy, source],
      ]) {
        const store = openStore();
        for (const file of files) for (let n = 1; n <= file.length; n += 1) take(store, file.slice(0, n));
        expect(stateOf(store)).toEqual(expected);
        const turns = openStore();
        for (let n = 1; n <= 6; n += 1) for (const file of files) take(turns, file.slice(0, n));
        expect(stateOf(turns)).toEqual(expected);
      }
    });

    test('has one of its own below it', () => {
      const another = copyOf(
        [...copy.slice(0, 4), person({ uuid: 'x1', parent: String(copy[3]?.uuid) }, 'else')],
        's-3',
      );
      for (const files of [
        [source, copy, another],
        [another, copy, source],
        [copy, source, another],
      ]) {
        const store = openStore();
        for (const file of [...files, ...files]) take(store, file);
        expect(stateOf(store)).toMatchObject({
          output: 40,
          sessions: [{ above: undefined }, { above: 's-1' }, { above: 's-1' }],
        });
      }
    });
  },
);

test('two sessions that say the same behind lost parents, each in the order of the other one, end the search for what is first', () => {
  /** Records under ids of their own, the first of them behind another parent. */
  const again = (records: readonly Raw[], name: string, parent: string | null): readonly Raw[] => {
    const named = (id: unknown) => (typeof id === 'string' ? `${name}-${id}` : id);
    return records.map((record, i) => ({
      ...record,
      uuid: named(record.uuid),
      parentUuid: i === 0 ? parent : named(record.parentUuid),
    }));
  };
  const [one, two] = [turn(1, null), turn(2, null)];
  const files = [
    [...one, ...again(two, 'b', 'lost')],
    copyOf([...again(two, 'd', null), ...again(one, 'e', 'lost')]),
  ];
  for (const order of [files, files.toReversed()]) {
    const store = openStore();
    for (const file of [...order, ...order]) take(store, file);
    const names = store.sessions.list({ all: true }).map(({ session }) => session);
    expect(names.toSorted()).toEqual(['s-1', 's-2']);
    expect([...store.verify()]).toEqual([]);
  }
});
