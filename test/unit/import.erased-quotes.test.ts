import { appendFileSync, writeFileSync } from 'node:fs';
import {
  claudeCode,
  conversationsIn,
  discover,
  importConversation,
  parseJsonLines,
  planClaudeCode,
  reconcile,
  SourceTable,
} from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

function take(store: SqliteTapeStore, records: readonly Raw[]): void {
  const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
  reconcile(store, planClaudeCode({ name: 'file', lines }));
}

const at = (second: number) => ({ timestamp: new Date(Date.UTC(2026, 2, 12, 9, 0, second)).toISOString() });
const prompt = `an aardvark is what I look for, in each of the ${'many '.repeat(40)}burrows`;
const source: readonly Raw[] = [
  person({ uuid: 'u1' }, prompt, at(1)),
  model({ uuid: 'a1', parent: 'u1' }, [says('none is there')], at(2)),
  person({ uuid: 'u2', parent: 'a1' }, 'thanks', at(3)),
  model({ uuid: 'a2', parent: 'u2' }, [says('gladly')], at(4)),
];
const last = (uuid: string, sessionId = 's-1') => ({
  ...{ type: 'last-prompt', sessionId, leafUuid: uuid },
  lastPrompt: `${prompt.slice(0, 150)}…`,
});

const copied = (prefix: string): readonly Raw[] =>
  source.map((one) => ({
    ...{ ...one, sessionId: 's-2', uuid: `${prefix}${one.uuid}` },
    parentUuid: one.parentUuid === null ? null : `${prefix}${one.parentUuid}`,
  }));

/** Where a text is in a home: in entries of whatever session, in titles, and for a search. */
const found = (store: SqliteTapeStore, text: string): readonly string[] => {
  const sessions = store.sessions.list({ all: true, titles: true });
  const entries = sessions.flatMap(({ id }) => [...store.entries.read(id, { own: true })]);
  return [
    ...entries.flatMap((one) =>
      JSON.stringify(one.payload).includes(text) ? `${one.session}@${one.seq}` : [],
    ),
    ...sessions.flatMap(({ session, title }) =>
      title?.includes(text) === true ? `title of ${session}` : [],
    ),
    ...store.entries.search({ text }).hits.map(({ session, seq }) => `search ${session}@${seq}`),
  ];
};

/** Erases what a session has with a text. */
function erase(store: SqliteTapeStore, session: string, text: string): void {
  const own = [...store.entries.read(session, { own: true })];
  const seqs = own.flatMap(({ seq, payload }) => (JSON.stringify(payload).includes(text) ? seq : []));
  store.entries.redact(session, seqs, 'private');
  expect(found(store, text)).toEqual([]);
}

test.each(['', 'c-'])(
  'titles and notes of a copy with the ids %s… do not bring back a prompt that was erased',
  (prefix) => {
    using store = openStore();
    take(store, source);
    erase(store, 's-1', 'aardvark');
    const quotes = [
      { type: 'custom-title', sessionId: 's-2', customTitle: `${prompt.slice(0, 70)}…` },
      { type: 'ai-title', sessionId: 's-2', aiTitle: prompt },
      { type: 'summary', leafUuid: `${prefix}a2`, summary: prompt.slice(0, 120) },
      { type: 'queue-operation', operation: 'enqueue', sessionId: 's-2', content: prompt },
      last(`${prefix}a2`, 's-2'),
    ];
    const others = [
      { type: 'queue-operation', operation: 'enqueue', sessionId: 's-2', content: 'a zebra' },
      { type: 'summary', leafUuid: 'elsewhere', summary: 'Looks for an okapi' },
    ];
    const file = [...copied(prefix), ...quotes, ...others];
    for (const _ of ['at first', 'again']) {
      take(store, file);
      expect(found(store, 'aardvark')).toEqual([]);
    }
    for (const text of ['zebra', 'okapi']) expect(found(store, text)).not.toEqual([]);
    expect([...store.verify()]).toEqual([]);
  },
);

test('a title that quotes nothing erased is taken, and so is a later one', () => {
  using store = openStore();
  take(store, source);
  erase(store, 's-1', 'aardvark');
  const titled = (customTitle: string) => ({ type: 'custom-title', sessionId: 's-2', customTitle });
  take(store, [...copied('c-'), titled(prompt)]);
  expect(store.sessions.find('s-2')?.title).toBeUndefined();
  take(store, [...copied('c-'), titled(prompt), titled('Burrows')]);
  expect(store.sessions.find('s-2')?.title).toBe('Burrows');
  expect(found(store, 'aardvark')).toEqual([]);
});

test.each(['(Branch)', '(Branch 2)', '(Branch) (Branch)', '(Fork)'])(
  'a title that a copy has of a prompt that was erased, with %s behind it, does not bring it back',
  (end) => {
    using store = openStore();
    const short = source.map((one, n) =>
      n === 0 ? person({ uuid: 'u1' }, 'find the aardvark', at(1)) : one,
    );
    take(store, short);
    erase(store, 's-1', 'aardvark');
    const titled = (name: string) => ({
      ...{ type: 'custom-title', sessionId: 's-2' },
      customTitle: `${name} ${end}`,
    });
    const copy = short.map((one) => ({ ...one, sessionId: 's-2', forkedFrom: { sessionId: 's-1' } }));
    take(store, [...copy, titled('find the aardvark')]);
    expect(found(store, 'aardvark')).toEqual([]);
    take(store, [...copy, titled('find the aardvark'), titled('find the badger')]);
    expect(store.sessions.find('s-2')?.title).toBe(`find the badger ${end}`);
    expect(found(store, 'aardvark')).toEqual([]);
  },
);

test('a note of the last prompt that comes to a source once the prompt was erased does not bring it back', () => {
  using store = openStore();
  take(store, [...source, last('a2')]);
  erase(store, 's-1', 'aardvark');
  take(store, [...source, last('a2'), last('a2')]);
  expect(found(store, 'aardvark')).toEqual([]);
});

test('a record beside the conversation that was erased alone does not come back with a copy that has its id', () => {
  using store = openStore();
  const uuid = '5f3c9a52-0000-4000-8000-000000000001';
  const notice = {
    type: 'system',
    subtype: 'informational',
    uuid,
    parentUuid: 'a1',
    content: 'an aardvark, asleep',
  };
  take(store, [...source.slice(2), { ...notice, ...at(2), sessionId: 's-1' }]);
  erase(store, 's-1', 'asleep');
  take(store, [...copied('').slice(2), { ...notice, ...at(2), sessionId: 's-2' }]);
  expect(found(store, 'asleep')).toEqual([]);
});

test('the file of a large output that was erased does not come back with a copy that has it, too', () => {
  using store = openStore();
  const read = (records: readonly Raw[]) => {
    const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
    const outputs = [{ name: 'out.txt', bytes: Buffer.from('a badger') }];
    reconcile(store, planClaudeCode({ name: 'file', lines, outputs }));
  };
  const files = () =>
    store.sessions
      .list({ all: true })
      .flatMap(({ id }) =>
        [...store.entries.read(id, { own: true })].filter(
          ({ key, payload }) =>
            key?.includes('tool-results') === true && JSON.stringify(payload).includes('out.txt'),
        ),
      );
  // The copy was forked before what the source has last, and inherits no file.
  read([...source, person({ uuid: 'u3', parent: 'a2' }, 'and more', at(5))]);
  const [file] = files();
  store.entries.redact('s-1', file?.seq ?? 0, 'private');
  read(copied('c-'));
  expect(store.sessions.find('s-2')).toBeDefined();
  expect(files()).toEqual([]);
});

test('a note that is read with the end of a large source alone does not bring back a prompt, either', async () => {
  using dir = tempDir();
  using store = openStore();
  const id = '5f3c9a52-0000-4000-8000-000000000000';
  const path = dir.file(`${id}.jsonl`);
  const of = (one: Raw) => ({ ...one, sessionId: id });
  const read = async () => {
    const table = SourceTable.open(dir.file('sources.jsonl'));
    const place = { env: {}, home: '/nowhere' };
    const known = (one: string) => table.at(one);
    const { files } = await discover({ place, tools: [claudeCode], paths: [path], known });
    for (const one of conversationsIn(files)) await importConversation(store, one, { table });
  };
  const more = [3, 4, 5].flatMap((n) => [
    person({ uuid: `u${n}`, parent: `a${n - 1}` }, `more ${'x'.repeat(200_000)}`, at(2 * n)),
    model({ uuid: `a${n}`, parent: `u${n}` }, [says('yes')], at(2 * n + 1)),
  ]);
  writeFileSync(path, jsonl([...source, ...more].map(of)));
  await read();
  erase(store, id, 'aardvark');
  for (const n of [6, 7, 8]) {
    const turn = [
      person({ uuid: `u${n}`, parent: `a${n - 1}` }, `prompt ${n}`, at(2 * n)),
      model({ uuid: `a${n}`, parent: `u${n}` }, [says('yes')], at(2 * n + 1)),
    ];
    appendFileSync(path, jsonl([...turn, ...(n === 6 ? [] : [last(`a${n}`)])].map(of)));
    await read();
    expect(found(store, 'aardvark')).toEqual([]);
    expect(found(store, `prompt ${n}`)).not.toEqual([]);
  }
});

test('a note that quotes an output of one word that was erased does not bring it back', () => {
  using store = openStore();
  const word = 'aardvark-0123456789abcdef';
  const called = (prefix: string, sessionId: string): readonly Raw[] =>
    [
      person({ uuid: `${prefix}u1` }, 'show it', at(1)),
      model({ uuid: `${prefix}a1`, parent: `${prefix}u1` }, [calls('t1')], at(2)),
      person({ uuid: `${prefix}r1`, parent: `${prefix}a1` }, [returns('t1', word)], at(3)),
      model({ uuid: `${prefix}a2`, parent: `${prefix}r1` }, [says('shown')], at(4)),
    ].map((one) => ({ ...one, sessionId }));
  take(store, called('', 's-1'));
  erase(store, 's-1', word);
  const note = { type: 'queue-operation', operation: 'enqueue', sessionId: 's-2', content: word };
  const other = { ...note, content: 'okapi-0123456789abcdef' };
  take(store, [...called('c-', 's-2'), note, other]);
  expect(found(store, word)).toEqual([]);
  expect(found(store, other.content)).not.toEqual([]);
});
