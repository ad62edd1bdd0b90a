import type { Draft, Seq } from '../entry/entry.ts';
import { isObject, type JsonObject } from '../entry/json.ts';
import type { Intention } from '../lineage/outbox.ts';
import type { Writer } from '../tape/append.ts';
import { entryAt } from '../tape/read.ts';
import type { TapeRow } from '../tape/tape.ts';
import type { ForkRequest } from './request.ts';
import type { Since } from './span.ts';

/** The position of a child on its parent's tape. */
type ForkPoint = Pick<TapeRow, 'from_anchor' | 'floor_seq' | 'base_seq'>;

/** Returns the entries that every child begins with: `fork/start` and its intention. */
export function startDrafts(
  parent: TapeRow,
  child: ForkPoint,
  {
    since,
    request: { intention, terms, worktree },
    settings,
    now,
  }: { since: Since; request: ForkRequest; settings: JsonObject; now: number },
): Draft[] {
  const more = {
    ...(since.state !== undefined && { state: since.state }),
    ...(Object.keys(settings).length > 0 && { settings }),
    ...(terms !== undefined && { terms }),
    ...(worktree !== undefined && {
      worktree: { repository: worktree.repository, git: worktree.git },
    }),
  };
  return [startMark(parent, child, more), ...intentionMark(intention, now)];
}

export function rangeOf(child: Pick<ForkPoint, 'floor_seq' | 'base_seq'>): [Seq, Seq] | null {
  return child.floor_seq === child.base_seq ? null : [child.floor_seq + 1, child.base_seq];
}

/** Returns the settings that a fork's start records. */
export function settingsOf({ db }: Pick<Writer, 'db'>, tape: TapeRow): JsonObject {
  if (tape.parent_id === null) return {};
  const payload = entryAt(db, tape, tape.base_seq + 1)?.payload;
  return isObject(payload) && isObject(payload.settings) ? payload.settings : {};
}

function startMark(parent: TapeRow, child: ForkPoint, more: JsonObject): Draft {
  return {
    kind: 'anchor',
    mark: 'anchor',
    name: 'fork/start',
    payload: {
      parent: parent.ulid,
      parent_name: parent.name,
      from_anchor: child.from_anchor,
      range: rangeOf(child),
      base: child.base_seq,
      ...more,
    },
  };
}

function intentionMark(intention: Intention | undefined, now: number): Draft[] {
  if (intention === undefined) return [];
  const { nextSteps, contextSummary, triggerOnComplete } = intention;
  const state = {
    ...(nextSteps !== undefined && { next_steps: nextSteps }),
    ...(contextSummary !== undefined && { context_summary: contextSummary }),
    ...(triggerOnComplete !== undefined && { trigger_on_complete: triggerOnComplete }),
    created_at: new Date(now).toISOString(),
  };
  return [{ kind: 'anchor', mark: 'anchor', name: 'intention', payload: { state } }];
}
