import { tapeStoreContract } from '@tapedeck/tape/conformance';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

tapeStoreContract({ test, expect }, () => {
  const dir = tempDir();
  const store = openStore(dir.file('tape.db'));
  const dispose = store[Symbol.asyncDispose].bind(store);
  return Object.assign(store, {
    [Symbol.asyncDispose]: async () => {
      await dispose();
      dir[Symbol.dispose]();
    },
  });
});
