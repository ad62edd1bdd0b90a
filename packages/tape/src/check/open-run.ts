import type { Db } from '../sqlite/sqlite.ts';
import { isRunOpen } from '../tape/open-run.ts';
import type { TapeRow } from '../tape/tape.ts';
import { type Problem, problemsOf } from './problem.ts';

/** Yields a difference between the row in `open_run` and the entries of a tape. */
export function* verifyOpenRun(db: Db, { id, name }: TapeRow): Generator<Problem> {
  const isRecorded = db.get('SELECT 1 FROM open_run WHERE tape_id = @id', { id }) !== undefined;
  if (isRecorded === isRunOpen(db, id)) return;
  const why = isRecorded ? 'is recorded as open, and its entries end it' : 'is open, and not recorded so';
  yield problemsOf(name)('open-run-differs', null, `the last run of '${name}' ${why}`);
}
