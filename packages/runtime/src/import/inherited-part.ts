import type { Draft } from '@tapedeck/tape';
import { firstPromptIn } from '../imported/first-prompt.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import type { Writing } from './writing.ts';

/** What the own part of a branch says in the entries that its session inherits. */
export interface Inherited {
  /** The time of its last message, as its source writes it. */
  readonly timestamp?: string;
  /** The beginning of its first prompt. */
  readonly title?: string;
}

/**
 * What the list of sessions says of a branch, where its session inherits a part that is not in the main conversation: in pieces,
 * that was here before the prompt that left it. Pure.
 * @param own the drafts of the branch that are no part of the conversation that it left, and of which its session has no entry
 */
export function inheritedOf(own: readonly Draft[]): Inherited {
  // One after another: all of them with their content need not be in memory.
  const messages = () =>
    own
      .values()
      .filter(({ kind }) => kind === 'message')
      .map(wholeDraft);
  let [timestamp, latest]: [string | undefined, number] = [undefined, Number.NEGATIVE_INFINITY];
  for (const { meta } of messages()) {
    const time = typeof meta?.timestamp === 'string' ? Date.parse(meta.timestamp) : Number.NaN;
    if (time >= latest) [timestamp, latest] = [String(meta?.timestamp), time];
  }
  const title = firstPromptIn(messages());
  return { ...(timestamp !== undefined && { timestamp }), ...(title !== undefined && { title }) };
}

/** The drafts of a conversation from one place to another that say something still. Lazy. Pure. */
export function* notErased(
  { conversation, erasedElsewhere }: Pick<Writing, 'conversation' | 'erasedElsewhere'>,
  { from, to, erased }: { readonly from: number; readonly to: number; readonly erased: ReadonlySet<string> },
): Generator<Draft> {
  const { spine } = conversation;
  for (let i = from; i < Math.min(to, spine.length); i += 1) {
    const draft = spine[i] as Draft;
    if (!erased.has(draft.key ?? '') && erasedElsewhere?.has(conversation, i) !== true) yield draft;
  }
}
