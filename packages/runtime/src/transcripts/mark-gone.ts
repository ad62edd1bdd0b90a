import { note, type SqliteTapeStore } from '@tapedeck/tape';
import { sha256 } from '@tapedeck/tape/store';
import { appendBeside } from '../import/beside.ts';
import { Origins } from '../import/origins.ts';
import type { Source, SourceTable } from '../sources/index.ts';

/**
 * Marks the sessions whose files are gone, as the table has found it, and that were seen nowhere else: the tape is then the
 * only place that has them.
 */
export function markSessionsGone(
  store: SqliteTapeStore,
  gone: readonly Source[],
  table: Pick<SourceTable, 'of'>,
): void {
  const origins = new Origins(store);
  for (const source of gone.filter(({ role }) => role === 'main')) {
    const { tool, session, path, goneAt } = source;
    if (table.of(source).some((one) => one.goneAt === undefined)) continue;
    const id = origins.find(JSON.stringify({ format: tool, session }))?.id;
    if (id === undefined) continue;
    const key = `import:gone:${sha256(`${path} ${goneAt}`).slice(0, 16)}`;
    appendBeside(store, id, [{ ...note('import/gone', { file: path }), key }]);
  }
}
