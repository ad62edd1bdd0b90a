import { type Writer, writeEntries } from './append.ts';
import { type Collected, collectResult } from './collect.ts';
import type { Draft, Seq } from './entry.ts';
import { TapeError } from './errors.ts';
import { hex, sha256 } from './hash.ts';
import { hiddenBy, segments } from './interval.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import { type Lease, liveLease, ownerOf, writeEpoch } from './lease.ts';
import { mergeBlock, mergeSource } from './merge-block.ts';
import { recordLineage } from './outbox.ts';
import { needEntry } from './read.ts';
import type { Db } from './sqlite.ts';
import { needTape, type Ref, type TapeRow, type Task, tapeById } from './tapes.ts';

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
}

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
  readonly graphLagging?: true;
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
  const child = needTape(db, realm, draft.child);
  const { into, base } = chooseTarget(db, realm, child, draft.into);
  const to = draft.force === true ? child.settled_seq : child.head_seq;
  const from = lastMerged(db, child, into) ?? child.base_seq;
  const range = [Math.min(from + 1, to), to] as const;
  const childHead = headAt(db, child, to);
  return { child, into, base, range, childHead, collected: collectResult(db, child, range) };
}

/**
 * Writes a merge at the end of the parent's tape: the mark `merge/{child}` and one message, with the line in the
 * lineage; on the child nothing (storage.md 9). Runs in the caller's transaction; `undefined` when the child has
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
  const report = findConflicts(db, plan);
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
  touchMerged(db, plan, seq);
  db.run('UPDATE tape SET delivery = @delivery, merged_at = @now, updated_at = @now WHERE id = @id', {
    id: child.id,
    delivery: discard ? 'discarded' : 'merged',
    now: sources.now(),
  });
  recordLineage(writer, tapeById(db, child.id), {
    type: discard ? 'discard' : 'merge',
    into: after,
    seq,
    range: plan.range,
    parentHead: after.head_hash,
    childHead: plan.childHead,
  });
  return {
    parent: into.name,
    child: child.name,
    state: discard ? 'discarded' : 'merged',
    seq,
    range: plan.range,
    repeated: false,
    ...report,
  };
}

function chooseTarget(
  db: Db,
  realm: string,
  child: TapeRow,
  into: Ref | undefined,
): { into: TapeRow; base: Seq } {
  const asked = into === undefined ? undefined : needTape(db, realm, into);
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

function repeatMerge(
  { db }: Writer,
  { child, into, draft, seq }: { child: TapeRow; into: TapeRow; draft: MergeDraft; seq: Seq },
): Merged {
  const { payload } = needEntry(db, into, seq);
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
function touchMerged(db: Db, { child, into, range }: MergePlan, seq: Seq): void {
  db.run(
    `INSERT INTO touch (tape_id, what, seq, wrote, via)
       SELECT @into, what, @seq, max(wrote), @via FROM touch
         WHERE tape_id = @child AND seq BETWEEN @from AND @to GROUP BY what
       ON CONFLICT DO NOTHING`,
    { into: into.id, seq, via: child.name, child: child.id, from: range[0], to: range[1] },
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
  { child, range, childHead, collected }: MergePlan,
  draft: MergeDraft,
  { key, report, gap, status }: { key: string; report: ConflictReport; gap: number; status: Task },
): Draft {
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
    gap,
  };
  return { kind: 'anchor', mark: 'anchor', name: `merge/${child.name}`, payload: { state }, key };
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
