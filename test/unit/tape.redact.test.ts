import { readdirSync, readFileSync } from 'node:fs';
import { assistant, openTapeStore, toolCall, user, view } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { refusal } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const secret = 'hunter2-and-more';

describe('redaction', () => {
  test('erases the content everywhere, and the chain still verifies', () => {
    using dir = tempDir();
    {
      using store = openTapeStore(dir.file('tape.db'));
      store.session('main');
      store.append('main', [user('before'), user(`the password is ${secret}`), user('after')]);
      expect(store.search({ text: secret })).toHaveLength(1);
      const done = store.redact('main', 3, 'a password was pasted');
      expect(done).toEqual({
        session: 'main',
        seq: 3,
        by: 5,
        repeated: false,
        quotedBy: [],
        logEmptied: true,
      });
      expect(store.search({ text: secret })).toEqual([]);
      const [entry] = store.read('main', { from: 3, to: 3 });
      expect(entry).toMatchObject({ payload: null, meta: {}, kind: 'message' });
      expect(JSON.stringify(view(store.viewEntries('main')).messages)).not.toContain(secret);
      expect([...store.verify()]).toEqual([]);
    }
    for (const name of readdirSync(dir.path))
      expect(readFileSync(dir.file(name)).includes(secret), name).toBe(false);
  });

  test('acts on the tape that owns the entry, and names the merges that may quote it', () => {
    using store = openTapeStore(':memory:');
    store.session('main');
    store.append('main', [user('inherited')]);
    const { session: child } = store.fork('main', { name: 'child' });
    store.append(child, [assistant(secret)]);
    const merged = store.merge(child);
    expect(store.redact(child, 2, 'why')).toMatchObject({ session: 'main', seq: 2 });
    expect(store.redact(child, 4, 'why')).toMatchObject({
      session: 'child',
      quotedBy: [`main@${merged.seq + 1}`],
    });
    expect([...store.verify()]).toEqual([]);
  });

  test('done again, changes nothing', () => {
    using store = openTapeStore(':memory:');
    store.session('main');
    store.append('main', [user(secret)]);
    const first = store.redact('main', 2, 'why');
    expect(store.redact('main', 2, 'why')).toEqual({ ...first, repeated: true });
    expect(store.find('main')?.head).toBe(3);
  });

  test('keeps bytes that another entry needs, and erases those that none does', () => {
    using store = openTapeStore(':memory:');
    store.session('main');
    const file = (bytes: Uint8Array) => user([{ type: 'file', mediaType: 'image/png', data: bytes }]);
    const [shared, own] = [new Uint8Array([1, 2, 3]), new Uint8Array([4, 5, 6])];
    store.append('main', [file(shared), file(shared), file(own)]);
    const hashes = [...store.read('main', { kind: 'message' })].map(
      ({ payload }) => /[0-9a-f]{64}/.exec(JSON.stringify(payload))?.[0] ?? '',
    );
    store.redact('main', 2, 'why');
    store.redact('main', 4, 'why');
    expect(store.blob(hashes[0] ?? '')).toEqual(Buffer.from(shared));
    expect(refusal(() => store.blob(hashes[2] ?? '')).code).toBe('TAPE_NO_BLOB');
  });

  test('is refused for what the reading depends on, what is open, and what is not there', () => {
    using store = openTapeStore(':memory:');
    store.session('main');
    store.append('main', [user('a'), user('b')]);
    store.rewind('main', 2);
    store.append('main', [assistant([toolCall('c1', 'read', {})])]);
    expect(refusal(() => store.redact('main', 4, 'why')).code).toBe('TAPE_BAD_ENTRY');
    expect(refusal(() => store.redact('main', 5, 'why')).code).toBe('TAPE_UNSETTLED');
    expect(refusal(() => store.redact('main', 9, 'why')).code).toBe('TAPE_NO_SEQ');
  });
});
