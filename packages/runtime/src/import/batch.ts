import type { Draft, Seq } from '@tapedeck/tape';
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
  { head, imported, change: { rewindTo, drafts }, back }: ReadTape,
  first: readonly Draft[],
): readonly Draft[] {
  const rewind = rewindTo === undefined ? [] : [rewindDraft(rewindTo)];
  const whole = [...rewind, ...first, ...drafts].map(wholeDraft);
  const shown = back?.shown ?? imported.shown.filter(({ seq }) => rewindTo === undefined || seq <= rewindTo);
  return withRefs(whole, { plan, next: head + 1, shown });
}

/** The entry behind which readers see nothing of what is behind a position before it. */
export function rewindDraft(to: Seq): Draft {
  return { kind: 'rewind', mark: 'rewind', ref: to, payload: { to, mode: rewindMode } };
}
