import { assistant, openTapeStore, toolCall, toolResult, user, view } from '@tapedeck/tape';
import { isBlobRef, restoreBlobs } from '@tapedeck/tape/store';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';

const image = (data: Uint8Array | string) => user([{ type: 'file', mediaType: 'image/png', data }]);
const bytes = new Uint8Array(400).map((_, i) => i);

describe('bytes', () => {
  test('return in their original form, and are stored once', () => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    const base64 = Buffer.from(bytes).toString('base64');
    store.entries.append('main', [image(bytes), image(base64)]);
    const [, message] = view(store.views.entries('main', { at: 2 })).messages.concat(
      view(store.views.entries('main')).messages,
    );
    const parts = message?.content ?? [];
    expect(parts.map(({ data }) => isBlobRef(data))).toEqual([true, true]);
    const back = restoreBlobs(parts, (hash) => store.entries.blob(hash)) as { data: unknown }[];
    expect(back.map(({ data }) => data)).toEqual([Buffer.from(bytes), base64]);
  });

  test('are found behind any number of other values', () => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    const many = Array.from({ length: 20_000 }, (_, i) => ({ i }));
    store.entries.append('main', [{ kind: 'event', name: 'log', payload: { many, last: [bytes] } as never }]);
    const [entry] = store.entries.read('main', { last: 1 });
    const { last } = (entry?.payload ?? {}) as unknown as { last: unknown[] };
    expect(last.map(isBlobRef)).toEqual([true]);
    expect(restoreBlobs(last, (hash) => store.entries.blob(hash))).toEqual([Buffer.from(bytes)]);
  });

  test('that only look like a reference are data', () => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    const lookalikes = [
      { type: 'blob', hash: '0'.repeat(64), size: 1, as: 'bytes' },
      { type: 'blob', as: 'json', value: 1 },
    ];
    store.entries.append('main', [assistant([toolCall('c1', 'read', {})])]);
    store.entries.append('main', [
      toolResult({ toolCallId: 'c1', toolName: 'read' }, { type: 'json', value: lookalikes }),
    ]);
    const [, , results] = view(store.views.entries('main')).messages;
    const shown = restoreBlobs(results?.content, () => {
      throw new Error('nothing is to be loaded');
    });
    expect(shown).toMatchObject([{ output: { type: 'json', value: lookalikes } }]);
    expect([...store.verify()]).toEqual([]);
  });

  test.each([
    ['changed', 'UPDATE blob SET bytes = zeroblob(400)'],
    ['deleted', 'DELETE FROM blob'],
    ['replaced', 'INSERT OR REPLACE INTO blob (hash, bytes) SELECT hash, zeroblob(400) FROM blob'],
    ['cut off from their entry', 'DELETE FROM blob_ref'],
  ])('cannot be %s by any statement, and verify names the entry when the triggers are gone', (_what, sql) => {
    using dir = tempDir();
    {
      using store = openTapeStore(dir.file('tape.db'));
      store.sessions.open('main');
      store.entries.append('main', [user('before'), image(bytes)]);
    }
    const raw = new Database(dir.file('tape.db'));
    expect(() => raw.exec(sql)).toThrow(/append-only/);
    for (const name of ['blob_update', 'blob_delete', 'blob_insert', 'blob_ref_delete'])
      raw.exec(`DROP TRIGGER ${name}`);
    raw.pragma('foreign_keys = OFF');
    raw.exec(sql);
    raw.close();
    using store = openTapeStore(dir.file('tape.db'), { readonly: true });
    const found = [...store.verify()].map(({ code, session, seq }) => [code, session, seq]);
    expect(found).toEqual([['blob-changed', 'main', 3]]);
  });
});
