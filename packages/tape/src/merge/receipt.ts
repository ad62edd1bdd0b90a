import type { Artifact } from '../entry/artifact.ts';
import type { Seq } from '../entry/entry.ts';
import { sha256 } from '../entry/hash.ts';
import { isObject, type JsonObject } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
import type { GraphReceipt } from '../lineage/line.ts';
import type { Writer } from '../tape/append.ts';
import { hiddenBy } from '../tape/interval.ts';
import { getEntry } from '../tape/read.ts';
import type { TapeRow } from '../tape/tape.ts';
import type { Conflict, ConflictReport } from './conflicts.ts';
import { artifactIn } from './drafts.ts';
import type { MergeDraft, MergePlan } from './plan.ts';

/** The receipt of a merge. */
export interface Merged extends ConflictReport, GraphReceipt {
  readonly parent: string;
  readonly child: string;
  readonly state: 'merged' | 'discarded';
  /** Position of the merge's anchor on the parent's tape. */
  readonly seq: Seq;
  /** The child's positions that the merge covers, both ends included. */
  readonly range: readonly [Seq, Seq];
  /** Whether this is the receipt of an earlier merge: nothing was written. */
  readonly repeated: boolean;
  /** The changes in the child's worktree. */
  readonly artifact?: Artifact;
}

/** Makes the receipt of a merge whose mark is, or would be, at `seq`. */
export function receiptOf(
  plan: MergePlan,
  draft: MergeDraft,
  { seq, report }: { readonly seq: Seq; readonly report: ConflictReport },
): Merged {
  const { child, into, range } = plan;
  return {
    parent: into.name,
    child: child.name,
    state: draft.strategy === 'discard' ? 'discarded' : 'merged',
    seq,
    range,
    repeated: false,
    ...report,
    ...artifactIn(plan),
  };
}

/** Returns the key to write a merge under, and the position of the same merge if it is visible. */
export function visibleMerge(
  { db }: Pick<Writer, 'db'>,
  into: TapeRow,
  key: string,
): { key: string; receipt?: Seq } {
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

/** Makes the receipt of a merge whose anchor was redacted, from its lineage line. */
function mergedByLine(
  db: Writer['db'],
  { child, into, seq }: { child: TapeRow; into: TapeRow; seq: Seq },
): Merged {
  const row = db.get<{ type: string; first: Seq; last: Seq }>(
    `SELECT type, CAST(line ->> '$.range[0]' AS BIGINT) AS first, CAST(line ->> '$.range[1]' AS BIGINT) AS last FROM lineage
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

/** A merge that a request would repeat. */
export interface EarlierMerge {
  readonly receipt: Merged;
  /** Why the request cannot be a repetition of it. */
  readonly refusal?: TapeError;
}

/** Returns the merge at a position of the target; with a refusal if the request has another strategy or result. */
export function earlierMerge(
  { db }: Pick<Writer, 'db'>,
  { child, into, draft, seq }: { child: TapeRow; into: TapeRow; draft: MergeDraft; seq: Seq },
): EarlierMerge {
  const { payload } = getEntry(db, into, seq);
  if (payload === null) return { receipt: mergedByLine(db, { child, into, seq }) };
  const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
  const refusal = otherAct({ child, into, draft, seq }, state);
  return {
    receipt: {
      parent: into.name,
      child: child.name,
      state: state.strategy === 'discard' ? 'discarded' : 'merged',
      seq,
      range: state.range as unknown as [Seq, Seq],
      repeated: true,
      complete: state.complete === true,
      conflicts: (state.conflicts ?? []) as unknown as Conflict[],
      ...(isObject(state.artifact) && { artifact: state.artifact as unknown as Artifact }),
    },
    ...(refusal !== undefined && { refusal }),
  };
}

/** Returns why a request cannot repeat the merge whose anchor has this state, or undefined when it can. */
function otherAct(
  { child, into, draft, seq }: { child: TapeRow; into: TapeRow; draft: MergeDraft; seq: Seq },
  state: JsonObject,
): TapeError | undefined {
  const strategy = String(state.strategy);
  if ((strategy === 'discard') !== (draft.strategy === 'discard'))
    return delivered(child, into, strategy === 'discard' ? 'discarded' : 'merged');
  // All that the request is to deliver was delivered, in whatever words.
  if (draft.unlessMerged !== undefined) return undefined;
  const otherStrategy = draft.strategy !== undefined && draft.strategy !== strategy;
  const otherResult = draft.text !== undefined && sha256(draft.text) !== state.result_digest;
  if (!otherStrategy && !otherResult) return undefined;
  return new TapeError(
    'TAPE_CONFLICT',
    `cannot merge '${child.name}' into '${into.name}' again: ${into.name}@${seq} merged it with another ${
      otherStrategy ? 'strategy' : 'result'
    }`,
    { data: { parent: into.name, child: child.name, seq } },
  );
}

/** The error for a merge of a discarded child, or a discard of a merged one. */
export function delivered(child: TapeRow, into: TapeRow, how: string): TapeError {
  const act = how === 'merged' ? `discard '${child.name}'` : `merge '${child.name}' into '${into.name}'`;
  return new TapeError('TAPE_CONFLICT', `cannot ${act}: it is already ${how}`, {
    data: { parent: into.name, child: child.name },
  });
}
