import type { SessionInfo } from '@tapedeck/tape';
import { deliveryOf, isDeleted, isoTime, lifecycleWord } from '@tapedeck/tape/internal';
import type { SessionCounts } from '@tapedeck/tape/store';
import type { Style } from '../terminal/style.ts';

/** A session as `--json` prints it; part of the documented contract. */
export function sessionJson(info: SessionInfo): Readonly<Record<string, unknown>> {
  const delivery = deliveryOf(info);
  return {
    session: info.session,
    id: info.id,
    kind: info.kind,
    lifecycle: info.lifecycle,
    ...(info.task !== undefined && { task: info.task }),
    ...(delivery !== undefined && { delivery }),
    ...(info.parent !== undefined && { parent: info.parent, from_anchor: info.fromAnchor ?? null }),
    ...(info.link !== undefined && { link: linkJson(info.link, info.link.parent) }),
    ...(info.mergedAt !== undefined && delivery !== undefined && { merged_at: isoTime(info.mergedAt) }),
    ...(info.title !== undefined && { title: info.title }),
    ...(info.sourceGone !== undefined && { source_gone: info.sourceGone }),
    ...(info.aliases.length > 0 && { aliases: info.aliases }),
    ...(info.ephemeral && { ephemeral: true }),
    head: info.head,
    updated_at: isoTime(info.updatedAt),
    ...(info.lastMessageAt !== undefined && { last_message_at: isoTime(info.lastMessageAt) }),
    message_count: info.messageCount,
    ...(info.counts && countsJson(info.counts)),
  };
}

/** The parent of a session in the tree, and what the edge is. */
export function linkJson(
  {
    type,
    derived = false,
    evidence,
    call,
    seq,
  }: {
    readonly type: string;
    readonly derived?: boolean;
    readonly evidence?: string | undefined;
    readonly call?: string | undefined;
    readonly seq?: number | undefined;
  },
  parent: string | null | undefined,
): Readonly<Record<string, unknown>> {
  return {
    ...{ parent: parent ?? null, type, derived },
    ...(evidence !== undefined && { evidence }),
    ...(call !== undefined && { call }),
    ...(seq !== undefined && { seq }),
  };
}

function countsJson(counts: SessionCounts): Readonly<Record<string, unknown>> {
  const { children, openChildren, mergedChildren, tokens } = counts;
  return {
    children: { all: children, open: openChildren, merged: mergedChildren },
    tokens,
  };
}

/**
 * The state of a session for people: what became of its result, else of its task, else of itself. A result that was
 * merged may be that of a task that did not complete: `merged, failed`.
 */
export function stateOf({
  task,
  lifecycle,
  ...work
}: {
  readonly delivery?: string | undefined;
  readonly undone?: true;
  readonly task?: string | undefined;
  readonly lifecycle: string;
}): string {
  if (isDeleted({ lifecycle })) return lifecycleWord(lifecycle);
  const delivery = deliveryOf(work);
  if (delivery === 'merged' && task !== undefined && task !== 'completed' && task !== 'running')
    return `${delivery}, ${task}`;
  return delivery ?? task ?? lifecycle;
}

/** A state, with what is to be known of a session whose source is gone. That it is active says nothing beside that. */
export function withSource(state: string, { sourceGone }: Pick<SessionInfo, 'sourceGone'>): string {
  if (sourceGone === undefined) return state;
  return state === 'active' ? 'source gone' : `${state}, source gone`;
}

/** What the state of a session means: good or bad news, work that goes on, or neither. */
export function toneOf(state: string): 'good' | 'bad' | 'open' | 'plain' {
  if (/^(?:merged|completed)(?:, source gone)?$/.test(state)) return 'good';
  if (/^(?:merged, )?(?:failed|halted|aborted|interrupted|orphaned|filtered|damaged)\b/.test(state))
    return 'bad';
  return /^(?:busy|running|waiting|incomplete)\b/.test(state) ? 'open' : 'plain';
}

const colors = { good: 'green', bad: 'red', open: 'yellow' } as const;

/** The state of a session, in the colour of good or bad news; as it is where it is neither. */
export function painted(style: Style, state: string): string {
  const tone = toneOf(state);
  return tone === 'plain' ? state : style.text(colors[tone], state);
}
