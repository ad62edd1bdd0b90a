import type { HomeStore } from '@tapedeck/tape';
import { type HomeHead, quote } from '@tapedeck/tape/internal';
import type { FoundFile } from '../discovery/index.ts';
import { lookedAt } from '../import/unless-changed.ts';
import { forgottenEvent } from '../imported/copy-notes.ts';
import { ImportError } from '../lines/errors.ts';
import { beginningAs, type SourceTable } from '../sources/index.ts';

/** Where the home was when a table was read. */
const readAt = new WeakMap<SourceTable, HomeHead>();

/**
 * Refuses a copy of what was forgotten, under another name: records that have no ids are known by what they say alone.
 * @throws IMPORT_FORGOTTEN
 */
export async function assertNotForgotten(
  store: HomeStore,
  files: readonly FoundFile[],
  table: SourceTable,
): Promise<void> {
  for (const { path, role } of files) {
    if (role !== 'main' || table.at(path) !== undefined) continue;
    readForgotten(store, table);
    if ((await beginningAs(path, table.forgotten)) === undefined) continue;
    const why = 'it begins with all of a source that was forgotten';
    throw new ImportError('IMPORT_FORGOTTEN', `cannot import ${quote(path)}: ${why}`, {
      data: { file: path, why },
    });
  }
}

/** Reads what other processes have forgotten since the table was read, if the tapes say that they have: the table says it first. */
function readForgotten(store: HomeStore, table: SourceTable): void {
  const before = readAt.get(table);
  readAt.set(table, lookedAt(store));
  if (before === undefined || store.changesBehind(before, forgottenEvent).isErased) table.readForgotten();
}
