import type { Artifact } from '../entry/artifact.ts';
import type { Draft, Seq } from '../entry/entry.ts';
import { hex, sha256 } from '../entry/hash.ts';
import type { Json, JsonObject } from '../entry/json.ts';
import type { Posting, RunItem } from '../tape/post.ts';
import type { Task } from '../tape/tape.ts';
import { mergeBlock, mergeSource } from './block.ts';
import { textVersion } from './collect.ts';
import type { ConflictReport } from './conflicts.ts';
import type { MergeDraft, MergePlan } from './plan.ts';

/** Makes the mark of a merge on the parent's tape. */
export function mergeMark(
  plan: MergePlan,
  draft: MergeDraft,
  { key, report, gap, status }: { key: string; report: ConflictReport; gap: number; status: Task },
): Draft {
  const { child, range, childHead, collected } = plan;
  const rest = restOf(plan, draft);
  const state: JsonObject = {
    child: child.ulid,
    session: child.name,
    range,
    child_head: hex(childHead),
    status,
    strategy: draft.strategy ?? 'result',
    result_digest: sha256(draft.text ?? collected.text),
    // Says that the text is the child's own, so that it can be collected again and compared.
    ...(draft.text === undefined && { text_seq: collected.textSeq ?? null, text_version: textVersion }),
    duration_ms: collected.durationMs,
    ...(collected.usage !== undefined && { usage: collected.usage }),
    ...(draft.reason !== undefined && { reason: draft.reason }),
    ...(draft.asked !== undefined && { asked: draft.asked }),
    ...(draft.received !== undefined && { received: draft.received }),
    ...(isPartial(status) && { partial: true }),
    ...(rest.length > 0 && { partial: true, rest }),
    complete: report.complete,
    conflicts: report.conflicts as unknown as Json,
    ...(artifactIn(plan) as JsonObject),
    gap,
  };
  const { timestamp } = draft;
  const meta = timestamp === undefined ? undefined : { source: 'merge', timestamp };
  return { kind: 'anchor', mark: 'anchor', name: `merge/${child.name}`, payload: { state }, key, meta };
}

/** The pieces of interrupted answers that the text of a merge lacks. A given text has none. */
function restOf({ collected }: MergePlan, { text, strategy }: MergeDraft): readonly Seq[] {
  return text === undefined && strategy !== 'discard' ? (collected.rest ?? []) : [];
}

/** Returns whether a child was stopped before it had finished its work. */
function isPartial(status: Task): boolean {
  return status === 'halted' || status === 'aborted' || status === 'filtered' || status === 'orphaned';
}

/**
 * Makes the inbox item that starts a run of the parent, to read a result that it did not wait for. One for each
 * merge: `mergeKey` is the key of the merge's mark.
 */
export function noticeOf({ child }: MergePlan, status: Task, mergeKey: string): Posting<RunItem> {
  const key = mergeKey.replace(/^merge:/, 'notify:');
  const text = `Session ${child.name}, which you started, has ended (${status}). Its report is above.`;
  const payload = { role: 'user', content: [{ type: 'text', text }] };
  const drafts: Draft[] = [
    { kind: 'message', payload, meta: { source: 'agent', child: child.ulid }, key: `u:${key}` },
  ];
  return { body: { type: 'input', drafts }, mode: 'followup', source: 'agent', key };
}

/** Returns the artifact that a child recorded, if any. */
export function artifactIn({ collected: { recorded } }: MergePlan): { readonly artifact?: Artifact } {
  return recorded === undefined ? {} : { artifact: recorded.artifact };
}

/** Makes the message to the parent's model; none for a discard. */
export function mergeMessage(plan: MergePlan, draft: MergeDraft, status: Task): Draft[] {
  if (draft.strategy === 'discard') return [];
  const { child, range, childHead, collected } = plan;
  const place = { child: child.name, fromAnchor: child.from_anchor, range };
  const text = mergeBlock({
    ...place,
    status,
    partial: isPartial(status) || restOf(plan, draft).length > 0,
    childHead: hex(childHead),
    text: draft.text ?? collected.text,
    ...(draft.text === undefined && { textFrom: collected.textFrom, textSeq: collected.textSeq }),
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
        ...(draft.timestamp !== undefined && { timestamp: draft.timestamp }),
        ...(draft.context === false && { context: false }),
        ...(draft.usage !== undefined && { usage: draft.usage }),
      },
    },
  ];
}
