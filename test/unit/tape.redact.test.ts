import { readdirSync, readFileSync } from 'node:fs';
import { assistant, note, openTapeStore, toolCall, user, view } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { refusal } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const secret = 'hunter2-and-more';

describe('redaction', () => {
  test('erases the content everywhere, and the chain still verifies', () => {
    using dir = tempDir();
    {
      using store = openTapeStore(dir.file('tape.db'));
      store.sessions.open('main');
      store.entries.append('main', [user('before'), user(`the password is ${secret}`), user('after')]);
      expect(store.entries.search({ text: secret }).hits).toHaveLength(1);
      const done = store.entries.redact('main', 3, 'a password was pasted');
      expect(done).toEqual({
        session: 'main',
        seq: 3,
        by: 5,
        repeated: false,
        quotedBy: [],
        logEmptied: true,
      });
      expect(store.entries.search({ text: secret }).hits).toEqual([]);
      const [entry] = store.entries.read('main', { from: 3, to: 3 });
      expect(entry).toMatchObject({ payload: null, meta: {}, kind: 'message' });
      expect(JSON.stringify(view(store.views.entries('main')).messages)).not.toContain(secret);
      expect([...store.verify()]).toEqual([]);
    }
    for (const name of readdirSync(dir.path))
      expect(readFileSync(dir.file(name)).includes(secret), name).toBe(false);
  });

  test('acts on the tape that owns the entry, and names the merges that may quote it', () => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    store.entries.append('main', [user('inherited')]);
    const { session: child } = store.lineage.fork('main', { name: 'child' });
    store.entries.append(child, [assistant(secret)]);
    const merged = store.lineage.merge(child);
    expect(store.entries.redact(child, 2, 'why')).toMatchObject({ session: 'main', seq: 2 });
    expect(store.entries.redact(child, 4, 'why')).toMatchObject({
      session: 'child',
      quotedBy: [`main@${merged.seq + 1}`],
    });
    expect([...store.verify()]).toEqual([]);
  });

  test('repeated, changes nothing', () => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    store.entries.append('main', [user(secret)]);
    const first = store.entries.redact('main', 2, 'why');
    expect(store.entries.redact('main', 2, 'why')).toEqual({ ...first, repeated: true });
    expect(store.sessions.find('main')?.head).toBe(3);
  });

  test('keeps bytes that another entry needs, and erases the others', () => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    const file = (bytes: Uint8Array) => user([{ type: 'file', mediaType: 'image/png', data: bytes }]);
    const [shared, own] = [new Uint8Array([1, 2, 3]), new Uint8Array([4, 5, 6])];
    store.entries.append('main', [file(shared), file(shared), file(own)]);
    const hashes = [...store.entries.read('main', { kind: 'message' })].map(
      ({ payload }) => /[0-9a-f]{64}/.exec(JSON.stringify(payload))?.[0] ?? '',
    );
    store.entries.redact('main', 2, 'why');
    store.entries.redact('main', 4, 'why');
    expect(store.entries.blob(hashes[0] ?? '')).toEqual(Buffer.from(shared));
    expect(refusal(() => store.entries.blob(hashes[2] ?? '')).code).toBe('TAPE_NO_BLOB');
  });

  test('is refused for entries that reading depends on, for open calls, and for missing entries', () => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    store.entries.append('main', [user('a'), user('b')]);
    store.history.rewind('main', 2);
    store.entries.append('main', [assistant([toolCall('c1', 'read', {})])]);
    expect(refusal(() => store.entries.redact('main', 4, 'why')).code).toBe('TAPE_BAD_ENTRY');
    expect(refusal(() => store.entries.redact('main', 5, 'why')).code).toBe('TAPE_UNSETTLED');
    expect(refusal(() => store.entries.redact('main', 9, 'why')).code).toBe('TAPE_NO_SEQ');
  });

  test('is refused for the entry by which imports know a session, and done for an event of a program with that name', () => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    const source = note('import/source', { format: 'claude-code', session: 's-1' });
    store.entries.append('main', [user('a'), source, { ...source, key: 'import:source:0' }]);
    expect(() => store.entries.redact('main', [2, 4], 'why')).toThrowError(
      'cannot redact main@4: it says what the session was imported from, and has no content of that',
    );
    expect(store.sessions.find('main')?.head).toBe(4);
    expect(store.entries.redact('main', [2, 3], 'why').map(({ seq }) => seq)).toEqual([2, 3]);
  });
});
