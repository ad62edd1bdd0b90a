import type { Draft, Entry } from '@tapedeck/tape';
import { isObject, leftOfSource } from '@tapedeck/tape/internal';
import { wholeDraft } from '../plan/later-draft.ts';
import type { ConversationPlan, PlacedAside } from '../plan/plan.ts';

/** Whether the content of an entry was erased, or never written since that of an earlier writing was. */
export function isErased({ payload, absent, meta }: Pick<Entry, 'payload' | 'absent' | 'meta'>): boolean {
  return (payload === null && absent !== true) || meta.erased === true;
}

/**
 * What is written again of a draft whose content was erased: its place, and of its calls what their results need. Pure.
 */
export function withoutContent(draft: Draft): Draft {
  const { meta = {}, payload, ...rest } = wholeDraft(draft);
  const left = { ...leftOfSource(meta), source: 'import', erased: true };
  return { ...rest, payload: emptied(rest, payload), meta: left };
}

/**
 * What is written of a record beside a conversation: without its content, where it is the rest of a record that was erased, or
 * lies between two of those, since it may repeat what they said. Pure.
 * @param isGone whether what the conversation has in a place was erased
 */
export function asideLeft(
  { draft, after }: PlacedAside,
  { spine }: Pick<ConversationPlan, 'spine'>,
  isGone: (place: number) => boolean,
): Draft {
  const isBehind = after === 0 || isGone(after - 1);
  const isRest = after > 0 && draft.key?.startsWith(`${spine[after - 1]?.key}:`) === true;
  return isBehind && (isRest || isGone(after)) ? withoutContent(draft) : draft;
}

function emptied({ kind, mark, key }: Pick<Draft, 'kind' | 'mark' | 'key'>, payload: unknown): unknown {
  if (mark === 'boundary') return { state: {} };
  // Of one that a redaction has erased, nothing says whose it was, nor which call it answers.
  const {
    type,
    toolCallId = key,
    toolName = 'erased',
    role = 'user',
    content,
  } = isObject(payload) ? payload : {};
  if (kind === 'tool-result') return { type, toolCallId, toolName, output: { type: 'text', value: '' } };
  return kind === 'message' ? { role, content: emptyCalls(content) } : {};
}

function emptyCalls(content: unknown): unknown[] {
  if (!Array.isArray(content)) return [];
  return content.flatMap((part) => {
    if (!isObject(part) || part.type !== 'tool-call' || part.providerExecuted === true) return [];
    const { type, toolCallId, toolName } = part;
    return [{ type, toolCallId, toolName, input: {} }];
  });
}
