import type { Seq } from '../entry/entry.ts';
import type { JsonObject } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
import type { Db } from '../sqlite/sqlite.ts';
import { getTape } from '../tape/find.ts';
import { hiddenBy, segments } from '../tape/interval.ts';
import { type Ref, type TapeRow, type Task, tapeById } from '../tape/tape.ts';
import { type Collected, collectResult } from './collect.ts';

/** How a child's work becomes a message; the text of any but `result` and `discard` is made by the caller. */
export type MergeStrategy = 'result' | 'summary' | 'structured' | 'pick' | 'discard';

/** A merge as it is asked for. */
export interface MergeDraft extends MergeRequest {
  readonly child: Ref;
}

export interface MergeRequest {
  /** Where to; by default the child's parent, else one of its ancestors. */
  readonly into?: Ref;
  readonly strategy?: MergeStrategy;
  /** The result to merge, instead of what the child's tape says. */
  readonly text?: string;
  /** How the child ended, instead of what its tape says. */
  readonly status?: Task;
  readonly reason?: string;
  /** False keeps the message out of views, when the parent learns the result another way. */
  readonly context?: boolean;
  readonly onConflict?: 'report' | 'refuse';
  /** Merge a child that is still running, up to its settled point. */
  readonly force?: boolean;
  readonly charsMax?: number;
  /** Tells the parent with a message of its own that the child has ended: it starts a run (B22, K32). */
  readonly notify?: boolean;
  /** When a parent that is being run takes it in: between two steps, or when the run has ended. */
  readonly at?: 'step' | 'idle';
  /** What writing the text took of a model. */
  readonly usage?: JsonObject;
  /** What the model that wrote the text was shown of the child, where one did. */
  readonly asked?: JsonObject;
  /** The paths that the child wrote, instead of those that its worktree's record tells; the verdict is complete then. */
  readonly written?: readonly string[];
}

/** What reading the child gave, and the head for which it holds. */
export interface MergePlan {
  readonly child: TapeRow;
  readonly into: TapeRow;
  /** The last position of the target that the child goes back to. */
  readonly base: Seq;
  readonly range: readonly [Seq, Seq];
  readonly childHead: Uint8Array;
  readonly collected: Collected;
}

/** Reads all that a merge needs, outside its transaction, so that a long child holds no lock. */
export function planMerge(db: Db, realm: string, draft: MergeDraft): MergePlan {
  const child = getTape(db, realm, draft.child);
  const { into, base } = chooseTarget(db, realm, child, draft.into);
  const to = draft.force === true ? child.settled_seq : child.head_seq;
  const range = rangeOf(db, child, { into, to });
  const childHead = headAt(db, child, to);
  return { child, into, base, range, childHead, collected: collectResult(db, child, range) };
}

/** The child's own positions up to `to` that a merge into a session brings: those after the last merge before `to`. */
function rangeOf(
  db: Db,
  child: TapeRow,
  { into, to }: { readonly into: TapeRow | undefined; readonly to: Seq },
): readonly [Seq, Seq] {
  const from = (into === undefined ? undefined : lastMerged(db, child, into)) ?? child.base_seq;
  return [Math.min(from + 1, to), to];
}

/**
 * Reads what a child has to show: for a range of its own positions, by default for those that a merge into its parent
 * brings, or has brought when nothing came after it.
 */
export function collect(db: Db, child: TapeRow, range?: readonly [Seq, Seq]): Collected {
  const into = child.parent_id === null ? undefined : tapeById(db, child.parent_id);
  return collectResult(db, child, range ?? rangeOf(db, child, { into, to: child.head_seq }));
}

function chooseTarget(
  db: Db,
  realm: string,
  child: TapeRow,
  into: Ref | undefined,
): { into: TapeRow; base: Seq } {
  const asked = into === undefined ? undefined : getTape(db, realm, into);
  let ancestor = child.parent_id === null ? undefined : tapeById(db, child.parent_id);
  if (ancestor === undefined)
    throw new TapeError('TAPE_CONFLICT', `cannot merge '${child.name}': it was not forked from any session`, {
      data: { session: child.name },
    });
  let base = child.base_seq;
  if (asked === undefined) return { into: ancestor, base };
  while (ancestor.id !== asked.id) {
    if (ancestor.parent_id === null)
      throw new TapeError(
        'TAPE_CONFLICT',
        `cannot merge '${child.name}' into '${asked.name}': it does not descend from it`,
        { data: { session: child.name, into: asked.name } },
      );
    base = Math.min(base, ancestor.base_seq);
    ancestor = tapeById(db, ancestor.parent_id);
  }
  return { into: ancestor, base };
}

/** Up to where a child has been merged into a session, by a merge that the session still sees. */
function lastMerged(db: Db, child: TapeRow, into: TapeRow): Seq | undefined {
  const merges = db.all<{ seq: Seq; to_seq: Seq }>(
    `SELECT seq, to_seq FROM lineage WHERE tape_id = @child AND type = 'merge' AND peer_id = @into ORDER BY g DESC`,
    { child: child.id, into: into.id },
  );
  return merges.find(({ seq, to_seq }) => to_seq < child.head_seq && hiddenBy(db, into, seq) === undefined)
    ?.to_seq;
}

function headAt(db: Db, child: TapeRow, seq: Seq): Uint8Array {
  if (seq === child.head_seq) return child.head_hash;
  const [owner] = segments(db, child, seq - 1, seq);
  const row = db.get<{ hash: Uint8Array }>('SELECT hash FROM entry WHERE tape_id = @tape AND seq = @seq', {
    tape: owner?.tapeId ?? child.id,
    seq,
  });
  return row?.hash ?? child.base_hash;
}
