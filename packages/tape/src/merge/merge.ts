/**
 * Merges: a child's result becomes a mark and a message at the end of its parent's tape. `plan.ts` reads the
 * child before the transaction, with `collect.ts`, which puts answers in pieces together by `answer.ts`; this file
 * decides and writes, with `conflicts.ts`, `drafts.ts` and `block.ts`; `receipt.ts` and `delivered.ts` find
 * earlier merges. Imports `lineage` and what lies below it.
 */
import { crashPoint } from '../crash-point.ts';
import type { Db } from '../db/db.ts';
import type { Draft } from '../entry/entry.ts';
import { hex } from '../entry/hash.ts';
import { TapeError } from '../errors.ts';
import { recordLineage } from '../lineage/outbox.ts';
import { ownerOf } from '../owner.ts';
import { type Writer, writeEntries } from '../tape/append.ts';
import { liveRuns } from '../tape/chunks.ts';
import { type Lease, liveLease, writeEpoch } from '../tape/lease.ts';
import { settleDead } from '../tape/leftovers.ts';
import { postItem } from '../tape/post.ts';
import { getEntry } from '../tape/read.ts';
import { lifecycleWord, type TapeRow, type Task, tapeById } from '../tape/tape.ts';
import { areMergesUndone } from '../tape/undone.ts';
import { textVersion } from './collect.ts';
import { type ConflictReport, findConflicts, touchMerged } from './conflicts.ts';
import { deliveredAt } from './delivered.ts';
import { mergeMark, mergeMessage, noticeOf } from './drafts.ts';
import type { MergeDraft, MergePlan } from './plan.ts';
import {
  delivered,
  type EarlierMerge,
  earlierMerge,
  type Merged,
  receiptOf,
  visibleMerge,
} from './receipt.ts';

/** A merge request, with what was read from its child. */
export interface PlannedMerge {
  readonly draft: MergeDraft;
  readonly plan: MergePlan;
}

/**
 * Writes merges, all or nothing, in the caller's transaction. Returns undefined, and writes nothing, when a
 * child has changed since its plan was made.
 * @throws the errors of `mergeTape`, and TAPE_CONFLICT for a child that another merge of the batch writes to
 */
export function mergeTapes(
  writer: Writer,
  planned: readonly PlannedMerge[],
  lease: Lease | undefined,
): Merged[] | undefined {
  const moved = ({ child }: MergePlan) => tapeById(writer.db, child.id).head_seq !== child.head_seq;
  if (planned.some(({ plan }) => moved(plan))) return undefined;
  return planned.map(({ plan, draft }) => {
    // Merging a child writes nothing to it: if it has changed now, another merge of the batch wrote to it.
    const merged = mergeTape(writer, plan, draft, lease);
    if (merged === undefined)
      throw new TapeError(
        'TAPE_CONFLICT',
        `cannot merge '${draft.child}': another merge of the batch writes to it`,
      );
    return merged;
  });
}

/** An earlier merge, or what to write for a new one. */
export type MergeDecision =
  | { readonly repeated: Merged }
  | {
      readonly repeated?: undefined;
      readonly child: TapeRow;
      readonly into: TapeRow;
      readonly epoch: number;
      /** The key of the merge's mark. */
      readonly key: string;
      readonly report: ConflictReport;
      readonly drafts: readonly Draft[];
    };

/**
 * Writes a merge at the end of the parent's tape, in the caller's transaction: the mark `merge/{child}`, one
 * message and the lineage line; nothing on the child's tape. Returns undefined when the child has changed
 * since the plan was made.
 * @throws the errors of `decideMerge`, and TAPE_BAD_ENTRY
 */
export function mergeTape(
  writer: Writer,
  plan: MergePlan,
  draft: MergeDraft,
  lease: Lease | undefined,
): Merged | undefined {
  const { db, sources } = writer;
  const parent = tapeById(db, plan.into.id);
  // What a run of the parent that died had said comes before the merge.
  const mayBeDead = lease === undefined && liveRuns(db, parent).length > 0;
  const isDead = mayBeDead && liveLease(db, parent.id, sources) === undefined;
  // A repeat writes nothing.
  if (isDead && mergedBefore(db, plan, draft) === undefined)
    settleDead(writer, parent, { epoch: parent.epoch + 1 });
  const decided = decideMerge(writer, plan, draft, lease);
  if (decided === undefined || decided.repeated !== undefined) return decided?.repeated;
  const { child, into, epoch, key, report, drafts } = decided;
  const discard = draft.strategy === 'discard';
  const { tape: after, seqs } = writeEntries(writer, into, drafts, epoch);
  const seq = seqs[0] ?? after.head_seq;
  crashPoint('merge/entries');
  // In the same transaction, so that a crash can neither lose nor repeat the notice.
  if (startsParent(child, into, draft) && !discard)
    postItem(writer, after, noticeOf(plan, statusOf(writer, child, draft), key));
  touchMerged(db, plan, { seq, discard });
  crashPoint('merge/touches');
  const delivery = discard ? 'discarded' : 'merged';
  const now = sources.now();
  db.run('UPDATE tape SET delivery = @delivery, merged_at = @now, updated_at = @now WHERE id = @id', {
    id: child.id,
    delivery,
    now,
  });
  crashPoint('merge/delivery');
  recordLineage(
    writer,
    { ...child, delivery, merged_at: now, updated_at: now },
    {
      type: discard ? 'discard' : 'merge',
      into: after,
      seq,
      range: plan.range,
      ...(draft.received !== undefined && { received: draft.received }),
      ...(draft.text === undefined && { textVersion }),
      parentHead: after.head_hash,
      childHead: plan.childHead,
    },
  );
  crashPoint('merge/lineage');
  return receiptOf(plan, draft, { seq, report });
}

/** Whether a merge starts a run of its target: the caller or the child's fork asked for it. */
function startsParent(child: TapeRow, into: TapeRow, { notify }: MergeDraft): boolean {
  return notify === true || (child.deliver === 'merge+turn' && child.parent_id === into.id);
}

/**
 * Decides on a merge without writing: it returns the earlier merge, or the entries to write. Returns
 * undefined when the child has changed since the plan was made.
 * @throws TAPE_BUSY, TAPE_UNSETTLED, TAPE_CONFLICT, TAPE_ARCHIVED, TAPE_FENCED, TAPE_NO_SEQ
 */
export function decideMerge(
  writer: Writer,
  plan: MergePlan,
  draft: MergeDraft,
  lease: Lease | undefined,
): MergeDecision | undefined {
  const { db, sources } = writer;
  const child = tapeById(db, plan.child.id);
  const into = tapeById(db, plan.into.id);
  if (child.head_seq !== plan.child.head_seq) return undefined;
  const { key, before } = placeOf(db, { child, into, plan, draft });
  if (before?.refusal !== undefined) throw before.refusal;
  if (before !== undefined) return { repeated: before.receipt };
  assertMergeable(writer, child, into, draft);
  const epoch = writeEpoch(db, into, { lease, clock: sources });
  if (into.settled_seq !== into.head_seq)
    throw new TapeError(
      'TAPE_UNSETTLED',
      `cannot merge '${child.name}' into '${into.name}': tool calls of '${into.name}' have no result yet`,
      { data: { parent: into.name, settled: into.settled_seq } },
    );
  if (draft.received !== undefined) getEntry(db, into, draft.received);
  const report = findConflicts(db, plan, draft);
  if (draft.onConflict === 'refuse' && (report.conflicts.length > 0 || !report.complete))
    throw refuse(child, into, report);
  const status = statusOf(writer, child, draft);
  const gap = into.head_seq - plan.base;
  const drafts = [mergeMark(plan, draft, { key, report, gap, status }), ...mergeMessage(plan, draft, status)];
  return { child, into, epoch, key, report, drafts };
}

/** Returns the visible merge that a request would repeat, or undefined. */
export function mergedBefore(db: Db, plan: MergePlan, draft: MergeDraft): EarlierMerge | undefined {
  const [child, into] = [tapeById(db, plan.child.id), tapeById(db, plan.into.id)];
  return placeOf(db, { child, into, plan, draft }).before;
}

/** Returns the key to write a merge under, and the visible merge that it would repeat. */
function placeOf(
  db: Db,
  {
    child,
    into,
    plan,
    draft,
  }: {
    readonly child: TapeRow;
    readonly into: TapeRow;
    readonly plan: MergePlan;
    readonly draft: MergeDraft;
  },
): { readonly key: string; readonly before?: EarlierMerge } {
  const { key, receipt } = visibleMerge({ db }, into, mergeKey(plan));
  const { unlessMerged: through } = draft;
  const seq = receipt ?? (through === undefined ? undefined : deliveredAt(db, { child, into, through }));
  if (seq === undefined) return { key };
  return { key, before: earlierMerge({ db }, { child, into, draft, seq }) };
}

function mergeKey({ child, childHead }: MergePlan): string {
  const head = hex(childHead);
  return `merge:${child.ulid}:${head}`;
}

function assertMergeable({ db, sources }: Writer, child: TapeRow, into: TapeRow, draft: MergeDraft): void {
  const act =
    draft.strategy === 'discard' ? `discard '${child.name}'` : `merge '${child.name}' into '${into.name}'`;
  const because = (why: string, data: Record<string, unknown> = {}) => ({
    message: `cannot ${act}: ${why}`,
    data: { parent: into.name, child: child.name, ...data },
  });
  const fail = (code: TapeError['code'], { message, data }: ReturnType<typeof because>) =>
    new TapeError(code, message, { data });
  const isOther =
    child.delivery !== null && (child.delivery === 'discarded') !== (draft.strategy === 'discard');
  // A child can be discarded after its merge was undone; a discard is for good.
  if (child.delivery !== null && isOther && !areMergesUndone(db, child.id))
    throw delivered(child, into, child.delivery);
  if (into.lifecycle !== 'active')
    throw fail(
      'TAPE_ARCHIVED',
      because(`'${into.name}' is ${lifecycleWord(into.lifecycle)}`, {
        lifecycle: into.lifecycle,
        id: into.ulid,
      }),
    );
  if (draft.force === true) return;
  const held = liveLease(db, child.id, sources);
  if (held !== undefined)
    throw fail(
      'TAPE_BUSY',
      because(`it is still running, in process ${held.pid ?? 'unknown'}`, { owner: ownerOf(held) }),
    );
  if (child.settled_seq !== child.head_seq)
    throw fail(
      'TAPE_UNSETTLED',
      because(`tool calls after ${child.name}@${child.settled_seq} have no result yet`, {
        settled: child.settled_seq,
      }),
    );
}

function refuse(child: TapeRow, into: TapeRow, report: ConflictReport): TapeError {
  const why =
    report.conflicts.length > 0
      ? `both wrote ${report.conflicts.map(({ what }) => what).join(', ')}`
      : 'a tool that does not declare its files ran, so conflicts cannot be ruled out';
  return new TapeError('TAPE_CONFLICT', `cannot merge '${child.name}' into '${into.name}': ${why}`, {
    data: { parent: into.name, child: child.name, ...report },
  });
}

function statusOf({ db, sources }: Writer, child: TapeRow, draft: MergeDraft): Task {
  if (draft.status !== undefined) return draft.status;
  if (child.task !== 'running') return child.task ?? 'completed';
  // Without a live lease, a child with task `running` was left behind by a crash.
  return liveLease(db, child.id, sources) === undefined ? 'orphaned' : 'running';
}
