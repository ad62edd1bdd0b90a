import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { openTapeStore, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';

describe('a backup', () => {
  test('taken while the store is written is whole, verified and private', async () => {
    using dir = tempDir();
    using store = openTapeStore(dir.file('tape.db'));
    store.sessions.open('main');
    for (let n = 0; n < 20; n += 1)
      store.entries.append(
        'main',
        Array.from({ length: 100 }, () => user('x'.repeat(500))),
      );
    const before = process.umask(0);
    const writing = setInterval(() => store.entries.append('main', [user('meanwhile')]), 1);
    try {
      await store.backup(dir.file('copy.db'));
    } finally {
      clearInterval(writing);
      process.umask(before);
    }
    expect(statSync(dir.file('copy.db')).mode & 0o777).toBe(0o600);
    using copy = openTapeStore(dir.file('copy.db'), { readonly: true });
    expect([...copy.verify()]).toEqual([]);
    expect(copy.sessions.find('main')?.head).toBeGreaterThanOrEqual(2001);
    expect(readdirSync(dir.path).filter((name) => name.includes('.part'))).toEqual([]);
  });

  test('replaces no file, and leaves no file when it fails', async () => {
    using dir = tempDir();
    using store = openTapeStore(dir.file('tape.db'));
    store.sessions.open('main');
    writeFileSync(dir.file('taken.db'), 'mine');
    await expect(store.backup(dir.file('taken.db'))).rejects.toMatchObject({ code: 'TAPE_EXISTS' });
    await expect(store.backup(dir.file('no/such/dir.db'))).rejects.toMatchObject({
      code: 'TAPE_CANNOT_OPEN',
    });
    expect(readdirSync(dir.path).filter((name) => !name.startsWith('tape.db'))).toEqual(['taken.db']);
  });
});
