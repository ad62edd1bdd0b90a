import type { Db } from '../db/db.ts';
import { parsed } from '../entry/parsed.ts';
import { isRunOpenAfter, runNotes } from '../entry/run-state.ts';

/** The columns of an entry that open and end runs. */
interface RunRow {
  readonly seq: number;
  readonly kind: string;
  readonly name: string | null;
  readonly payload: string | null;
  readonly meta: string | null;
}

/** Usually the last entry decides; else more are read at a time. */
const pages = [2, 500];

/** Computes from its entries whether the last run on a tape is open. An erased entry changes nothing. */
export function isRunOpen(db: Db, tapeId: number): boolean {
  let before = Number.MAX_SAFE_INTEGER;
  for (let page = 0; ; page += 1) {
    const limit = pages[Math.min(page, pages.length - 1)] ?? 1;
    const rows = db.all<RunRow>(
      `SELECT seq, kind, name, payload, meta FROM entry WHERE tape_id = @tapeId AND seq < @before
         AND (kind IN ('rewind', 'message', 'tool-result') OR (kind = 'event' AND name IN (${notes})))
         ORDER BY seq DESC LIMIT @limit`,
      { tapeId, before, limit },
    );
    for (const { kind, name, payload, meta } of rows) {
      const isOpen = isRunOpenAfter({ kind, name, payload: parsed(payload), meta: parsed(meta) });
      if (isOpen !== undefined) return isOpen;
    }
    if (rows.length < limit) return false;
    before = rows.at(-1)?.seq ?? before;
  }
}

const notes = runNotes.map((name) => `'${name}'`).join(', ');

/** Records whether a run is open on a tape, in the caller's transaction. The rows follow from the entries. */
export function saveRun(db: Db, tapeId: number, isOpen: boolean): void {
  db.run(
    isOpen
      ? 'INSERT INTO open_run (tape_id) VALUES (@tapeId) ON CONFLICT DO NOTHING'
      : 'DELETE FROM open_run WHERE tape_id = @tapeId',
    { tapeId },
  );
}
