import type { Draft, Seq } from '@tapedeck/tape';
import type { Change } from '../imported/change.ts';
import { rewindMode } from '../imported/imported.ts';
import { withRefs } from '../imported/refs.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import type { ConversationPlan } from '../plan/plan.ts';
import type { ReadTape } from './read-tape.ts';

/**
 * What is written at once: the rewind that makes room, what a new session begins with, and what it lacks. Pure.
 * @param first what a new session begins with
 */
export function batchOf(
  plan: ConversationPlan,
  { head, imported, change, back }: ReadTape,
  first: readonly Draft[],
): readonly Draft[] {
  const { rewindTo, drafts } = change;
  const rewind = rewindTo === undefined ? [] : [rewindDraft(rewindTo)];
  const begun = [...rewind, ...first];
  const before = [...begun, ...countingIn(change, head + begun.length)].map(wholeDraft);
  const shown = back?.shown ?? imported.shown.filter(({ seq }) => rewindTo === undefined || seq <= rewindTo);
  return [...before, ...withRefs(drafts.map(wholeDraft), { plan, next: head + before.length + 1, shown })];
}

/**
 * What counts tokens behind a position. No reader sees it: what the answers say is in another place. Pure.
 */
export function countingIn({ uncounted = [] }: Pick<Change, 'uncounted'>, at: Seq): readonly Draft[] {
  return uncounted.length === 0 ? [] : [...uncounted, rewindDraft(at)];
}

/** The entry behind which readers see nothing of what is behind a position before it. */
export function rewindDraft(to: Seq): Draft {
  return { kind: 'rewind', mark: 'rewind', ref: to, payload: { to, mode: rewindMode } };
}
