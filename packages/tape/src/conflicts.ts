import type { Seq } from './entry.ts';
import type { MergePlan } from './merge-plan.ts';
import type { Db } from './sqlite.ts';

/** Both sides wrote the same thing since the fork. */
export interface Conflict {
  /** `state:key` of an anchor's state, or `file:path`. */
  readonly what: string;
  readonly child: Seq;
  /** Position on the parent's tape of its own write, or of the sibling's merge that brought it. */
  readonly parent: Seq;
  /** The sibling, when it was one. */
  readonly via?: string;
}

export interface ConflictReport {
  /** False when a tool ran that does not declare what it writes. */
  readonly complete: boolean;
  readonly conflicts: readonly Conflict[];
}
/** The keys that the child wrote in the range, against what the parent and merged siblings wrote since the fork. */
export function findConflicts(db: Db, { child, into, base, range, collected }: MergePlan): ConflictReport {
  const touched = db.all<{ what: string; seq: Seq }>(
    `SELECT what, max(seq) AS seq FROM touch WHERE tape_id = @child AND wrote = 1 AND seq BETWEEN @from AND @to
       GROUP BY what`,
    { child: child.id, from: range[0], to: range[1] },
  );
  const conflicts = touched.flatMap(({ what, seq }) => {
    const other = db.get<{ seq: Seq; via: string | null }>(
      `SELECT seq, via FROM touch WHERE tape_id = @into AND what = @what AND wrote = 1 AND seq > @base
         AND (via IS NULL OR via <> @self) ORDER BY seq DESC LIMIT 1`,
      { into: into.id, what, base, self: child.name },
    );
    if (other === undefined) return [];
    return [{ what, child: seq, parent: other.seq, ...(other.via !== null && { via: other.via }) }];
  });
  return { complete: collected.complete, conflicts };
}

/** A merge brings what its child wrote: the next sibling and the parent's own merge see it at this position. */
export function touchMerged(db: Db, { child, into, range }: MergePlan, seq: Seq): void {
  db.run(
    `INSERT INTO touch (tape_id, what, seq, wrote, via)
       SELECT @into, what, @seq, max(wrote), @via FROM touch
         WHERE tape_id = @child AND seq BETWEEN @from AND @to GROUP BY what
       ON CONFLICT DO NOTHING`,
    { into: into.id, seq, via: child.name, child: child.id, from: range[0], to: range[1] },
  );
}
