import type { Db } from '../db/db.ts';
import { patchPaths } from '../entry/artifact.ts';
import type { Seq } from '../entry/entry.ts';
import { saveTouches } from '../entry/touch.ts';
import type { MergePlan, MergeRequest } from './plan.ts';

/** Something that both sides wrote since the fork. */
export interface Conflict {
  /** `state:key` of an anchor's state, or `file:path`. */
  readonly what: string;
  readonly child: Seq;
  /**
   * Position on the parent's tape of the parent's own write, or of the merge of the sibling that wrote it.
   */
  readonly parent: Seq;
  /** Name of the sibling, if one wrote it. */
  readonly via?: string;
}

/** What a child and its parent both changed since the fork. */
export interface ConflictReport {
  /** False when a tool that does not declare its paths ran. */
  readonly complete: boolean;
  readonly conflicts: readonly Conflict[];
}

/** Something that the child wrote, with the position on its tape. */
interface Written {
  readonly what: string;
  readonly seq: Seq;
}

/**
 * Compares what the child wrote in the range with what the parent and merged siblings wrote since the fork.
 * `written` replaces the paths that the record of the child's worktree names.
 */
export function findConflicts(
  db: Db,
  plan: MergePlan,
  { written }: Pick<MergeRequest, 'written'> = {},
): ConflictReport {
  const { child, into, base, range, collected } = plan;
  const touched = db.all<Written>(
    `SELECT what, max(seq) AS seq FROM touch WHERE tape_id = @child AND wrote = 1 AND seq BETWEEN @from AND @to
       GROUP BY what`,
    { child: child.id, from: range[0], to: range[1] },
  );
  const inWorktree = written?.map((path) => ({ what: `file:${path}`, seq: range[1] })) ?? filesOf(plan);
  const conflicts = eachOnce([...touched, ...inWorktree]).flatMap(({ what, seq }) => {
    const other = db.get<{ seq: Seq; via: string | null }>(
      `SELECT seq, via FROM touch WHERE tape_id = @into AND what = @what AND wrote = 1 AND seq > @base
         AND (via IS NULL OR via <> @self) ORDER BY seq DESC LIMIT 1`,
      { into: into.id, what, base, self: child.name },
    );
    if (other === undefined) return [];
    return [{ what, child: seq, parent: other.seq, ...(other.via !== null && { via: other.via }) }];
  });
  return { complete: written !== undefined || collected.complete, conflicts };
}

/** Returns the files that the patch of a child's worktree changes. */
function filesOf({ collected: { recorded } }: MergePlan): readonly Written[] {
  if (recorded === undefined) return [];
  return patchPaths(recorded.artifact).map((path) => ({ what: `file:${path}`, seq: recorded.seq }));
}

/** Keeps the last of several writes. */
function eachOnce(written: readonly Written[]): readonly Written[] {
  return [...new Map(written.map((one) => [one.what, one])).values()];
}

/**
 * Copies the child's touches to the parent, at the position of the merge, for later merges to compare with. A
 * discarded child's worktree changes are not copied, because they exist nowhere else.
 */
export function touchMerged(
  db: Db,
  plan: MergePlan,
  { seq, discard }: { readonly seq: Seq; readonly discard: boolean },
): void {
  const { child, into, range } = plan;
  db.run(
    `INSERT INTO touch (tape_id, what, seq, wrote, via)
       SELECT @into, what, @seq, max(wrote), @via FROM touch
         WHERE tape_id = @child AND seq BETWEEN @from AND @to GROUP BY what
       ON CONFLICT DO NOTHING`,
    { into: into.id, seq, via: child.name, child: child.id, from: range[0], to: range[1] },
  );
  if (discard) return;
  const files = filesOf(plan).map(({ what }) => ({ what, wrote: true }));
  saveTouches(db, into.id, { seq, via: child.name }, files);
}
