import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import type { JsonObject } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
import { getTape } from '../tape/find.ts';
import { hiddenBy, segments } from '../tape/interval.ts';
import { assertStatus, type Ref, type TapeRow, type Task, tapeById, tasks } from '../tape/tape.ts';
import { type Collected, collectResult } from './collect.ts';

/** How a child's work becomes a message. The caller makes the text, except for `result` and `discard`. */
const mergeStrategies = ['result', 'summary', 'structured', 'pick', 'discard'] as const;

/**
 * How the text of a merge is made. `result`: the child's result, else its last answer. `summary`: written by
 * a model. `structured`: the result, checked by its schema. `pick`: chosen entries, quoted. `discard`: none;
 * the parent gets a receipt only.
 */
export type MergeStrategy = (typeof mergeStrategies)[number];

/** A merge request with its child. */
export interface MergeDraft extends MergeRequest {
  readonly child: Ref;
}

/** A merge to make: where to, of what text, and what to do about conflicts. */
export interface MergeRequest {
  /** Target of the merge: the child's parent (default) or another ancestor. */
  readonly into?: Ref;
  readonly strategy?: MergeStrategy;
  /** Result to merge; default: the one on the child's tape. */
  readonly text?: string;
  /** Final state of the child; default: the recorded one. */
  readonly status?: Task;
  readonly reason?: string;
  /**
   * When it happened at its source, of a merge that an import found: a date and time with an offset, in the form of ISO
   * 8601. Lists and logs have the merge at that time. Default: when it is written.
   */
  readonly timestamp?: string;
  /**
   * The position at which the target had got the result before, as a transcript that an import read has it there. The mark
   * and the line of the merge name it, and graphs show it as the place of the merge.
   */
  readonly received?: Seq;
  /** False keeps the message out of views, for a parent that receives the result in another way. */
  readonly context?: boolean;
  readonly onConflict?: 'report' | 'refuse';
  /** Merge a child that is still running, up to its settled point. */
  readonly force?: boolean;
  /** Longest text of the merge message, in characters. What is longer is cut, with a pointer to the rest. */
  readonly charsMax?: number;
  /**
   * Also posts a message to the parent's inbox that the child has ended, which starts a run. A child that was forked
   * with `deliver: 'merge+turn'` does so without this.
   */
  readonly notify?: boolean;
  /**
   * The last position of the child that the request is to deliver. A visible merge of all that the child has done up to
   * there is not repeated, whatever has followed on its tape: the receipt is that of this merge, with any text. Without
   * it, a child that has grown is merged again.
   */
  readonly unlessMerged?: Seq;
  /** When a running parent applies the merge: between two steps, or after the run. */
  readonly at?: 'step' | 'idle';
  /** Tokens that a model used to write the text. */
  readonly usage?: JsonObject;
  /** What the model that wrote the text received of the child. */
  readonly asked?: JsonObject;
  /**
   * Paths that the child wrote; replaces the record of its worktree and makes the conflict report complete.
   */
  readonly written?: readonly string[];
}

/** What was read from the child, and the head for which it is valid. */
export interface MergePlan {
  readonly child: TapeRow;
  readonly into: TapeRow;
  /** Last position of the target that the child inherits. */
  readonly base: Seq;
  readonly range: readonly [Seq, Seq];
  readonly childHead: Uint8Array;
  readonly collected: Collected;
}

/**
 * Reads everything that a merge needs, outside its transaction, so that a long child does not hold the lock.
 */
export function planMerge(db: Db, realm: string, draft: MergeDraft): MergePlan {
  const child = getTape(db, realm, draft.child);
  if (draft.strategy !== undefined)
    assertStatus(`merge '${child.name}' with the strategy`, draft.strategy, mergeStrategies);
  if (draft.status !== undefined) assertStatus(`merge '${child.name}' with the status`, draft.status, tasks);
  const { into, base } = chooseTarget(db, realm, child, draft);
  const to = draft.force === true ? child.settled_seq : child.head_seq;
  const range = rangeOf(db, child, { into, to });
  const childHead = headAt(db, child, to);
  return { child, into, base, range, childHead, collected: collectResult(db, child, range) };
}

/**
 * Returns the child's own positions up to `to` that a merge into `into` covers: those after the last merge.
 */
function rangeOf(
  db: Db,
  child: TapeRow,
  { into, to }: { readonly into: TapeRow | undefined; readonly to: Seq },
): readonly [Seq, Seq] {
  const from = (into === undefined ? undefined : lastMerged(db, child, into)) ?? child.base_seq;
  return [Math.min(from + 1, to), to];
}

/**
 * Collects a child's result from a range of its own positions. Without a range: from those that a merge into its parent
 * covers, or has covered when nothing followed it. If they hold no result, for example only an anchor after a merge,
 * the text is that of all the child's entries; a merge does not repeat it.
 */
export function collect(db: Db, child: TapeRow, range?: readonly [Seq, Seq]): Collected {
  if (range !== undefined) return collectResult(db, child, range);
  const into = child.parent_id === null ? undefined : tapeById(db, child.parent_id);
  const [from, to] = rangeOf(db, child, { into, to: child.head_seq });
  const newest = collectResult(db, child, [from, to]);
  if (newest.textSeq !== undefined || from <= child.base_seq + 1) return newest;
  const { text, textSeq, textFrom, rest, value } = collectResult(db, child, [child.base_seq + 1, to]);
  return {
    ...newest,
    text,
    textSeq,
    ...(textFrom !== undefined && { textFrom }),
    ...(rest !== undefined && { rest }),
    ...(value !== undefined && { value }),
  };
}

function chooseTarget(
  db: Db,
  realm: string,
  child: TapeRow,
  { into, strategy }: Pick<MergeDraft, 'into' | 'strategy'>,
): { into: TapeRow; base: Seq } {
  const act = strategy === 'discard' ? 'discard' : 'merge';
  const requested = into === undefined ? undefined : getTape(db, realm, into);
  let ancestor = child.parent_id === null ? undefined : tapeById(db, child.parent_id);
  if (ancestor === undefined)
    throw new TapeError(
      'TAPE_CONFLICT',
      `cannot ${act} '${child.name}': it was not forked from any session`,
      {
        data: { session: child.name },
      },
    );
  let base = child.base_seq;
  if (requested === undefined) return { into: ancestor, base };
  while (ancestor.id !== requested.id) {
    if (ancestor.parent_id === null)
      throw new TapeError(
        'TAPE_CONFLICT',
        `cannot ${act} '${child.name}' into '${requested.name}': it is not a descendant of '${requested.name}'`,
        { data: { session: child.name, into: requested.name } },
      );
    base = Math.min(base, ancestor.base_seq);
    ancestor = tapeById(db, ancestor.parent_id);
  }
  return { into: ancestor, base };
}

/** Returns the last position of the child that a visible merge into the session covers. */
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
