import { openJournal } from '@tapedeck/graph/journal';
import { tapeStoreContract } from '@tapedeck/tape/store/conformance';
import { expect, test } from 'vitest';
import { countedIds } from '../support/ids.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

function open() {
  const dir = tempDir();
  const store = openStore(dir.file('tape.db'));
  const dispose = store[Symbol.asyncDispose].bind(store);
  return Object.assign(store, {
    [Symbol.asyncDispose]: async () => {
      await dispose();
      dir[Symbol.dispose]();
    },
  });
}

/** A home: the stores on it have ids and salts of their own. */
function place() {
  const dir = tempDir();
  let opened = 0;
  return {
    open: () => {
      opened += 1;
      const journal = openJournal(dir.file('session_graph.jsonl'));
      return openStore(dir.file('tape.db'), { journal, newId: countedIds(`01J${opened}`), now: Date.now });
    },
    [Symbol.asyncDispose]: async () => dir[Symbol.dispose](),
  };
}

tapeStoreContract({ test, expect }, open, { place });
