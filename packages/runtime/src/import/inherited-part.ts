import type { Draft } from '@tapedeck/tape';
import { isObject, titleLine } from '@tapedeck/tape/internal';
import { blocksOf } from '../imported/blocks.ts';
import { wholeDraft } from '../plan/later-draft.ts';

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
  const messages = own.filter(({ kind }) => kind === 'message').map(wholeDraft);
  const times = messages.flatMap(({ meta }) => (typeof meta?.timestamp === 'string' ? [meta.timestamp] : []));
  const timestamp = times.toSorted((a, b) => Date.parse(a) - Date.parse(b)).at(-1);
  const prompt = messages.find(isPrompt);
  const title = prompt && titleLine(textOf(prompt));
  return { ...(timestamp !== undefined && { timestamp }), ...(title !== undefined && { title }) };
}

/** Whether a user typed a message as a prompt. */
function isPrompt({ payload, meta }: Draft): boolean {
  const isUser = isObject(payload) && payload.role === 'user';
  return isUser && meta?.isMeta !== true && meta?.localCommand === undefined;
}

function textOf(message: Draft): string {
  const texts = blocksOf(message)
    .filter(isObject)
    .flatMap(({ type, text }) => (type === 'text' ? [String(text)] : []));
  return texts[0] ?? '';
}
