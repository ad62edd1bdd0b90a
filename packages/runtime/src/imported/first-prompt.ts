import type { Draft, HomeStore } from '@tapedeck/tape';
import { isObject, titleLine } from '@tapedeck/tape/internal';
import { blocksOf } from './blocks.ts';

/** A message, as a draft or as an entry. */
type Said = Pick<Draft, 'payload' | 'meta'>;

/** The beginning of the first prompt of some messages: that is what a list shows of a session without a title. Pure. */
export function firstPromptIn(messages: Iterable<Said>): string | undefined {
  for (const message of messages) if (isPrompt(message)) return titleLine(textOf(message));
  return undefined;
}

/** The first prompt of a session's own entries, as a list shows it. */
export function ownPrompt(store: HomeStore, session: string): string | undefined {
  return firstPromptIn(store.entries.read(session, { own: true, kind: 'message' }));
}

/** Whether a user typed a message as a prompt. */
function isPrompt({ payload, meta }: Said): boolean {
  const isUser = isObject(payload) && payload.role === 'user';
  return isUser && meta?.isMeta !== true && meta?.localCommand === undefined && meta?.source !== 'merge';
}

function textOf(message: Said): string {
  const texts = blocksOf(message)
    .filter(isObject)
    .flatMap(({ type, text }) => (type === 'text' ? [String(text)] : []));
  return texts[0] ?? '';
}
