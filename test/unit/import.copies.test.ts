import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { type SqliteTapeStore, view } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

const original: readonly Raw[] = [
  person({ uuid: 'u1' }, 'plan it'),
  model({ uuid: 'a1', parent: 'u1' }, [says('a plan')], { usage: { output_tokens: 5 } }),
  person({ uuid: 'u2', parent: 'a1' }, 'do it'),
];

/** What a copy of the first two records goes on with. */
const more: readonly Raw[] = [
  { ...person({ uuid: 'c3', parent: 'c2' }, 'do it elsewhere'), sessionId: 's-2' },
  {
    ...model({ uuid: 'c4', parent: 'c3' }, [says('done')], { usage: { output_tokens: 2 } }),
    sessionId: 's-2',
  },
];

const copy = (change: (record: Raw, i: number) => Raw): readonly Raw[] =>
  original.slice(0, 2).map((record, i) => ({ ...change(record, i), sessionId: 's-2' }));

/** The ways in which Claude Code has written a session that begins as a copy. */
const copies: Readonly<{ [way: string]: readonly Raw[] }> = {
  'with new uuids and the old ones beside them': [
    ...copy((record, i) => ({
      ...record,
      uuid: `c${i + 1}`,
      parentUuid: i === 0 ? null : `c${i}`,
      forkedFrom: { sessionId: 's-1', messageUuid: record.uuid },
    })),
    ...more,
  ],
  'with the old uuids and the session in a second field': [
    ...copy((record) => ({ ...record, session_id: 's-1' })),
    ...more.map((record, i) => (i === 0 ? { ...record, parentUuid: 'a1' } : record)),
  ],
  'with the old uuids and the session of the request': [
    ...copy((record) => (record.type === 'assistant' ? { ...record, requestSessionId: 's-1' } : record)),
    ...more.map((record, i) => (i === 0 ? { ...record, parentUuid: 'a1' } : record)),
  ],
};

function take(store: SqliteTapeStore, records: readonly Raw[]): void {
  const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
  reconcile(store, planClaudeCode({ name: 'file', lines }));
}

const texts = (store: SqliteTapeStore, session: string): unknown[] =>
  view(store.views.entries(session)).messages.map(({ content }) => content[0]?.text);

describe.each(Object.entries(copies))('a session that begins as a copy, %s', (_, records) => {
  test('is a fork: the copied part is stored once, and its tokens count once', () => {
    const store = openStore();
    take(store, original);
    take(store, records);
    expect(store.sessions.find('s-2')).toMatchObject({ parent: 's-1', kind: 'session' });
    expect([...store.entries.read('s-2', { own: true, kind: 'message' })]).toHaveLength(2);
    expect(texts(store, 's-2')).toEqual(['plan it', 'a plan', 'do it elsewhere', 'done']);
    expect(texts(store, 's-1')).toEqual(['plan it', 'a plan', 'do it']);
    const output = store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0);
    expect(output).toBe(7);
  });

  test('is a session of its own where the other one is not there', () => {
    const store = openStore();
    take(store, records);
    expect(store.sessions.find('s-2')?.parent).toBeUndefined();
    expect(texts(store, 's-2')).toEqual(['plan it', 'a plan', 'do it elsewhere', 'done']);
  });
});
