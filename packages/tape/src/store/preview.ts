import { type Encoded, encodeDraft } from '../entry/encode.ts';
import type { EntryKind, Seq } from '../entry/entry.ts';
import { TapeError, type TapeErrorCode } from '../errors.ts';
import { chooseName, decideFork, type Forked, snapped } from '../fork/fork.ts';
import { rangeOf, settingsOf, startDrafts } from '../fork/marks.ts';
import type { ForkRequest } from '../fork/request.ts';
import type { GraphReceipt } from '../lineage/line.ts';
import { findConflicts } from '../merge/conflicts.ts';
import { decideMerge, mergedBefore } from '../merge/merge.ts';
import { type MergeDraft, planMerge } from '../merge/plan.ts';
import { type Merged, receiptOf } from '../merge/receipt.ts';
import type { Writer } from '../tape/append.ts';
import type { TapeRow } from '../tape/tape.ts';

/** An entry that an act would write. */
export interface PreviewEntry {
  readonly seq: Seq;
  readonly kind: EntryKind;
  readonly name?: string;
  readonly payload: unknown;
}

/**
 * What a merge would write to its target's tape, and return; the receipt of the earlier merge, if one covers the
 * child's head.
 */
export interface MergePreview extends Omit<Merged, keyof GraphReceipt> {
  /** Empty when the merge exists already or is refused. */
  readonly entries: readonly PreviewEntry[];
  /** The error that the merge would throw now. The other fields are those of the merge without it. */
  readonly refusal?: TapeError;
}

/**
 * What a fork would write to its child's tape, and return. `session` is absent if each call derives a new
 * name.
 */
export interface ForkPreview extends Omit<Forked, keyof GraphReceipt | 'session' | 'id' | 'tape'> {
  readonly session?: string;
  /** Empty when the child exists already. */
  readonly entries: readonly PreviewEntry[];
}

/** The errors of a merge that its preview reports as its refusal. */
const refusals: ReadonlySet<TapeErrorCode> = new Set([
  'TAPE_BUSY',
  'TAPE_UNSETTLED',
  'TAPE_CONFLICT',
  'TAPE_ARCHIVED',
  'TAPE_BAD_ENTRY',
]);

/**
 * Returns what a merge would write and return now, or why it would be refused. Reads only.
 * @throws TAPE_NO_SESSION, TAPE_BAD_STATUS; TAPE_CONFLICT when the child was not forked from the target
 */
export function previewMerge(writer: Writer, realm: string, draft: MergeDraft): MergePreview {
  const { db } = writer;
  for (;;) {
    const plan = planMerge(db, realm, draft);
    const before = mergedBefore(db, plan, draft);
    if (before !== undefined)
      return {
        ...before.receipt,
        entries: [],
        ...(before.refusal !== undefined && { refusal: before.refusal }),
      };
    try {
      const decided = decideMerge(writer, plan, draft, undefined);
      if (decided === undefined || decided.repeated !== undefined) continue; // It changed after it was read.
      const { into, report, drafts } = decided;
      const receipt = receiptOf(plan, draft, { seq: into.head_seq + 1, report });
      return { ...receipt, entries: entriesAfter(into.head_seq, drafts.map(encodeDraft)) };
    } catch (error) {
      if (!(error instanceof TapeError) || !refusals.has(error.code)) throw error;
      const report = findConflicts(db, plan, draft);
      const receipt = receiptOf(plan, draft, { seq: plan.into.head_seq + 1, report });
      return { ...receipt, entries: [], refusal: error };
    }
  }
}

/**
 * Returns what a fork would write and return now. Reads only.
 * @param brought the entries that the request brings
 * @throws the errors of the fork
 */
export function previewFork(
  writer: Writer,
  parent: TapeRow,
  request: ForkRequest,
  brought: readonly Encoded[],
): ForkPreview {
  const decided = decideFork(writer, parent, request);
  if (decided.repeated !== undefined) {
    const { id: _id, tape: _tape, ...receipt } = decided.repeated;
    return { ...receipt, entries: [] };
  }
  const { cut, since } = decided;
  const { key, name } = request;
  const session = key === undefined && name === undefined ? undefined : chooseName(writer, parent, request);
  const child = { from_anchor: since.anchor ?? null, floor_seq: since.floor, base_seq: cut.base };
  const start = startDrafts(parent, child, {
    since,
    request,
    settings: { ...settingsOf(writer, parent), ...request.settings },
    now: writer.sources.now(),
  });
  return {
    ...(session !== undefined && { session }),
    parent: parent.name,
    fromAnchor: child.from_anchor,
    base: cut.base,
    range: rangeOf(child),
    ...snapped(cut, request),
    repeated: false,
    entries: entriesAfter(cut.base, [...start.map(encodeDraft), ...brought]),
  };
}

/** Gives encoded drafts the positions that they would get. */
function entriesAfter(head: Seq, drafts: readonly Encoded[]): PreviewEntry[] {
  return drafts.map(({ kind, name, value }, i) => ({
    ...{ seq: head + 1 + i, kind },
    ...(name !== null && { name }),
    payload: value,
  }));
}
