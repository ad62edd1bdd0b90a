import { BesideTapes } from '../check/beside.ts';
import { broughtBy } from '../check/touches.ts';
import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';
import { parsed } from '../entry/parsed.ts';
import { type TapeRow, tapeById } from '../tape/tape.ts';
import type { Planned } from './plan.ts';

interface MarkRow {
  readonly seq: Seq;
  readonly payload: string;
}

/**
 * Records what merges brought of their children, in the caller's transaction: of the merges that a bundle added, and of
 * those that were here before their child. Children come before parents, since what a child touched has what its own
 * merges brought.
 */
export function touchMarks(
  db: Db,
  adopted: readonly { readonly plan: Planned; readonly id: number; readonly entries: number }[],
): void {
  for (const { plan, id, entries } of adopted.toReversed()) {
    if (entries > 0 || plan.filled > 0)
      touchAll(db, tapeById(db, id), { name: 'merge:', after: plan.filled > 0 ? 0 : plan.common });
    if (entries > 0 || plan.filled > 0) touchAbove(db, tapeById(db, id));
  }
}

/** The marks of merges of a session, on its ancestors, and of the merges of those above them. */
function touchAbove(db: Db, tape: TapeRow): void {
  for (let child = tape; child.parent_id !== null && child.parent_id < child.id; ) {
    const merged = child.ulid;
    const parent = tapeById(db, child.parent_id);
    for (let at: TapeRow | undefined = parent; at !== undefined; )
      at = touchAll(db, at, { name: `merge:${merged}:`, after: 0 });
    child = parent;
  }
}

/** Records what the marks brought whose keys begin so; returns the parent of the tape. */
function touchAll(
  db: Db,
  tape: TapeRow,
  { name, after }: { readonly name: string; readonly after: Seq },
): TapeRow | undefined {
  const marks = db.all<MarkRow>(
    `SELECT seq, payload FROM entry WHERE tape_id = @id AND key >= @name AND key < @end AND seq > @after
       AND kind = 'anchor' AND payload IS NOT NULL ORDER BY seq`,
    { id: tape.id, name, end: `${name.slice(0, -1)};`, after },
  );
  if (marks.length > 0) {
    const tapes = new BesideTapes(db, { first: tape.id, last: tape.id });
    for (const { seq, payload } of marks) touchMark(db, tapes, { tape, seq, payload });
  }
  return tape.parent_id !== null && tape.parent_id < tape.id ? tapeById(db, tape.parent_id) : undefined;
}

function touchMark(
  db: Db,
  tapes: BesideTapes,
  { tape, seq, payload }: MarkRow & { readonly tape: TapeRow },
): void {
  const { state } = parsed(payload);
  const child = isObject(state) ? tapes.tapeOf(state.child) : undefined;
  if (!isObject(state) || child === undefined) return;
  for (const [what, wrote] of broughtBy(db, tapes, { child: child.id, state }))
    db.run(
      `INSERT INTO touch (tape_id, what, seq, wrote, via) VALUES (@tape, @what, @seq, @wrote, @via)
         ON CONFLICT (tape_id, what, seq) DO UPDATE SET wrote = @wrote, via = @via`,
      { tape: tape.id, what, seq, wrote: wrote ? 1 : 0, via: child.name },
    );
}
