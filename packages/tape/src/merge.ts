import { type Writer, writeEntries } from './append.ts';
import type { Artifact } from './artifact.ts';
import { type Conflict, type ConflictReport, findConflicts, touchMerged } from './conflicts.ts';
import { crashPoint } from './crash-point.ts';
import type { Draft, Seq } from './entry.ts';
import { TapeError } from './errors.ts';
import { hex, sha256 } from './hash.ts';
import { hiddenBy } from './interval.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import { type Lease, liveLease, ownerOf, writeEpoch } from './lease.ts';
import { mergeBlock, mergeSource } from './merge-block.ts';
import type { MergeDraft, MergePlan } from './merge-plan.ts';
import { recordLineage } from './outbox.ts';
import { needEntry } from './read.ts';
import { type TapeRow, type Task, tapeById } from './tapes.ts';

/** The receipt of a merge. */
export interface Merged extends ConflictReport {
  readonly parent: string;
  readonly child: string;
  readonly state: 'merged' | 'discarded';
  /** Position of the merge's anchor on the parent's tape. */
  readonly seq: Seq;
  /** The child's positions that it covers, both ends included. */
  readonly range: readonly [Seq, Seq];
  /** The merge was there already: nothing was written. */
  readonly repeated: boolean;
  /** What the child did in its worktree. */
  readonly artifact?: Artifact;
  readonly graphLagging?: true;
}

/** A merge as it is asked for, and what reading its child gave. */
export interface PlannedMerge {
  readonly draft: MergeDraft;
  readonly plan: MergePlan;
}

/**
 * Writes merges, all or none, in the caller's transaction; `undefined`, and nothing written, when a child has moved
 * since its plan was made.
 * @throws what `mergeTape` throws, and TAPE_CONFLICT for a child that another merge of the batch goes into
 */
export function mergeTapes(
  writer: Writer,
  planned: readonly PlannedMerge[],
  lease: Lease | undefined,
): Merged[] | undefined {
  const moved = ({ child }: MergePlan) => tapeById(writer.db, child.id).head_seq !== child.head_seq;
  if (planned.some(({ plan }) => moved(plan))) return undefined;
  return planned.map(({ plan, draft }) => {
    // A child merged twice in one batch has moved nothing of its own: its plan still holds.
    const merged = mergeTape(writer, plan, draft, lease);
    if (merged === undefined)
      throw new TapeError('TAPE_CONFLICT', `cannot merge '${draft.child}': the same batch merges into it`);
    return merged;
  });
}

/**
 * Writes a merge at the end of the parent's tape: the mark `merge/{child}` and one message, with the line in the
 * lineage; on the child nothing. Runs in the caller's transaction; `undefined` when the child has
 * moved since the plan was made.
 * @throws TAPE_BUSY, TAPE_UNSETTLED, TAPE_CONFLICT, TAPE_KEY_CONFLICT, TAPE_FENCED
 */
export function mergeTape(
  writer: Writer,
  plan: MergePlan,
  draft: MergeDraft,
  lease: Lease | undefined,
): Merged | undefined {
  const { db, sources } = writer;
  const child = tapeById(db, plan.child.id);
  const into = tapeById(db, plan.into.id);
  if (child.head_seq !== plan.child.head_seq) return undefined;
  const key = `merge:${child.ulid}:${hex(plan.childHead)}`;
  const before = visibleMerge(writer, into, key);
  if (before.receipt !== undefined) return repeatMerge(writer, { child, into, draft, seq: before.receipt });
  checkMergeable(writer, child, into, draft);
  const epoch = writeEpoch(db, into, { lease, now: sources.now() });
  if (into.settled_seq !== into.head_seq)
    throw new TapeError(
      'TAPE_UNSETTLED',
      `cannot merge '${child.name}' into '${into.name}': tool calls of '${into.name}' have no result yet`,
      { data: { parent: into.name, settled: into.settled_seq } },
    );
  const report = findConflicts(db, plan, draft);
  if (draft.onConflict === 'refuse' && (report.conflicts.length > 0 || !report.complete))
    throw refuse(child, into, report);
  const discard = draft.strategy === 'discard';
  const status = statusOf(writer, child, draft);
  const { tape: after, seqs } = writeEntries(
    writer,
    into,
    [
      mergeMark(plan, draft, { key: before.key, report, gap: into.head_seq - plan.base, status }),
      ...mergeMessage(plan, draft, status),
    ],
    epoch,
  );
  const seq = seqs[0] ?? after.head_seq;
  crashPoint('merge/entries');
  touchMerged(db, plan, { seq, discard });
  crashPoint('merge/touches');
  db.run('UPDATE tape SET delivery = @delivery, merged_at = @now, updated_at = @now WHERE id = @id', {
    id: child.id,
    delivery: discard ? 'discarded' : 'merged',
    now: sources.now(),
  });
  crashPoint('merge/delivery');
  recordLineage(writer, tapeById(db, child.id), {
    type: discard ? 'discard' : 'merge',
    into: after,
    seq,
    range: plan.range,
    parentHead: after.head_hash,
    childHead: plan.childHead,
  });
  crashPoint('merge/lineage');
  return {
    parent: into.name,
    child: child.name,
    state: discard ? 'discarded' : 'merged',
    seq,
    range: plan.range,
    repeated: false,
    ...report,
    ...artifactIn(plan),
  };
}
/** The key to write under, and the position of the same merge if the parent still sees it. */
function visibleMerge({ db }: Writer, into: TapeRow, key: string): { key: string; receipt?: Seq } {
  let candidate = key;
  for (;;) {
    const row = db.get<{ seq: Seq }>('SELECT seq FROM entry WHERE tape_id = @id AND key = @candidate', {
      id: into.id,
      candidate,
    });
    if (row === undefined) return { key: candidate };
    const hidden = hiddenBy(db, into, row.seq);
    if (hidden === undefined) return { key: candidate, receipt: row.seq };
    candidate = `${key}:${hidden}`;
  }
}

/** The receipt of a merge whose anchor was redacted: what the lineage says of it. */
function mergedByLine(
  db: Writer['db'],
  { child, into, seq }: { child: TapeRow; into: TapeRow; seq: Seq },
): Merged {
  const row = db.get<{ type: string; first: Seq; last: Seq }>(
    `SELECT type, line ->> '$.range[0]' AS first, line ->> '$.range[1]' AS last FROM lineage
       WHERE tape_id = @child AND peer_id = @into AND seq = @seq AND type IN ('merge', 'discard')`,
    { child: child.id, into: into.id, seq },
  );
  return {
    parent: into.name,
    child: child.name,
    state: row?.type === 'discard' ? 'discarded' : 'merged',
    seq,
    range: [row?.first ?? child.base_seq + 1, row?.last ?? child.head_seq],
    repeated: true,
    complete: false,
    conflicts: [],
  };
}

function repeatMerge(
  { db }: Writer,
  { child, into, draft, seq }: { child: TapeRow; into: TapeRow; draft: MergeDraft; seq: Seq },
): Merged {
  const { payload } = needEntry(db, into, seq);
  if (payload === null) return mergedByLine(db, { child, into, seq });
  const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
  const strategy = String(state.strategy);
  if ((strategy === 'discard') !== (draft.strategy === 'discard'))
    throw delivered(child, into, strategy === 'discard' ? 'discarded' : 'merged');
  const other =
    (draft.strategy !== undefined && draft.strategy !== strategy) ||
    (draft.text !== undefined && sha256(draft.text) !== state.result_digest);
  if (other)
    throw new TapeError(
      'TAPE_CONFLICT',
      `cannot merge '${child.name}' into '${into.name}' again: ${into.name}@${seq} has it with another ${
        draft.strategy !== undefined && draft.strategy !== strategy ? 'strategy' : 'result'
      }`,
      { data: { parent: into.name, child: child.name, seq } },
    );
  return {
    parent: into.name,
    child: child.name,
    state: strategy === 'discard' ? 'discarded' : 'merged',
    seq,
    range: state.range as unknown as [Seq, Seq],
    repeated: true,
    complete: state.complete === true,
    conflicts: (state.conflicts ?? []) as unknown as Conflict[],
    ...(isObject(state.artifact) && { artifact: state.artifact as unknown as Artifact }),
  };
}

function checkMergeable({ db, sources }: Writer, child: TapeRow, into: TapeRow, draft: MergeDraft): void {
  const because = (why: string, data: Record<string, unknown> = {}) => ({
    message: `cannot merge '${child.name}' into '${into.name}': ${why}`,
    data: { parent: into.name, child: child.name, ...data },
  });
  const fail = (code: TapeError['code'], { message, data }: ReturnType<typeof because>) =>
    new TapeError(code, message, { data });
  if (child.delivery !== null && (child.delivery === 'discarded') !== (draft.strategy === 'discard'))
    throw delivered(child, into, child.delivery);
  if (draft.force === true) return;
  const held = liveLease(db, child.id, sources.now());
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

/** What was discarded is not merged later, and the other way round (D510). */
function delivered(child: TapeRow, into: TapeRow, how: string): TapeError {
  return new TapeError(
    'TAPE_CONFLICT',
    `cannot merge '${child.name}' into '${into.name}': it is ${how} already`,
    { data: { parent: into.name, child: child.name } },
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
  // A child that says it is running while nobody runs it was left behind by a crash.
  return liveLease(db, child.id, sources.now()) === undefined ? 'orphaned' : 'running';
}

function mergeMark(
  plan: MergePlan,
  draft: MergeDraft,
  { key, report, gap, status }: { key: string; report: ConflictReport; gap: number; status: Task },
): Draft {
  const { child, range, childHead, collected } = plan;
  const state: JsonObject = {
    child: child.ulid,
    session: child.name,
    range,
    child_head: hex(childHead),
    status,
    strategy: draft.strategy ?? 'result',
    result_digest: sha256(draft.text ?? collected.text),
    duration_ms: collected.durationMs,
    ...(collected.usage !== undefined && { usage: collected.usage }),
    ...(draft.reason !== undefined && { reason: draft.reason }),
    complete: report.complete,
    conflicts: report.conflicts as unknown as Json,
    ...(artifactIn(plan) as JsonObject),
    gap,
  };
  return { kind: 'anchor', mark: 'anchor', name: `merge/${child.name}`, payload: { state }, key };
}

function artifactIn({ collected: { recorded } }: MergePlan): { readonly artifact?: Artifact } {
  return recorded === undefined ? {} : { artifact: recorded.artifact };
}

function mergeMessage(
  { child, range, childHead, collected }: MergePlan,
  draft: MergeDraft,
  status: Task,
): Draft[] {
  if (draft.strategy === 'discard') return [];
  const place = { child: child.name, fromAnchor: child.from_anchor, range };
  const text = mergeBlock({
    ...place,
    status,
    childHead: hex(childHead),
    text: draft.text ?? collected.text,
    textSeq: draft.text === undefined ? collected.textSeq : undefined,
    charsMax: draft.charsMax,
  });
  return [
    {
      kind: 'message',
      payload: { role: 'user', content: [{ type: 'text', text }] },
      meta: {
        source: 'merge',
        child: child.ulid,
        session: child.name,
        from: mergeSource(place),
        ...(draft.context === false && { context: false }),
      },
    },
  ];
}
