import { isObject, type Json } from './json.ts';

/** Who says a message of a conversation. */
export type Speaker = 'user' | 'assistant';

/** How many messages a conversation has, and who said the last of them. */
export interface Conversation {
  readonly message_count: number;
  readonly last_speaker: Speaker | null;
}

export const silence: Conversation = { message_count: 0, last_speaker: null };

/**
 * Whose message an entry is; undefined for one that no reader of the conversation sees as a message, and for one that an
 * import wrote before, whose source has more of it now (`meta.again`). Pure.
 */
export function speakerOf({
  kind,
  payload,
  meta,
}: {
  readonly kind: string;
  readonly payload: unknown;
  readonly meta?: { readonly [key: string]: Json } | undefined;
}): Speaker | undefined {
  if (kind !== 'message' || !isObject(payload)) return undefined;
  if (meta?.context === false || meta?.again !== undefined) return undefined;
  return payload.role === 'user' || payload.role === 'assistant' ? payload.role : undefined;
}

/** Counts a message. What a model says with its calls and after their results, until a user says more, is one answer. Pure. */
export function heard({ message_count, last_speaker }: Conversation, speaker: Speaker): Conversation {
  const isMore = speaker === 'assistant' && last_speaker === 'assistant';
  return { message_count: message_count + (isMore ? 0 : 1), last_speaker: speaker };
}
