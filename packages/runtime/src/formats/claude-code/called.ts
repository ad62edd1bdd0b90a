import type { Draft } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { keyPart } from '../../plan/key-part.ts';
import { wholeDraft } from '../../plan/later-draft.ts';

/** Whether a conversation has a call. Pure. */
export function hasCall(spine: readonly Draft[], call: string): boolean {
  return resultOf(spine, call) !== -1;
}

/** The place of the answer that has a call; -1 where none has it. Pure. */
export function messageWith(spine: readonly Draft[], call: string): number {
  const result = resultOf(spine, call);
  return result === -1 ? -1 : spine.findLastIndex(({ kind }, i) => i < result && kind === 'message');
}

/**
 * What a subagent says, where the answer that called it, with which Claude Code begins the file of one that knows what its parent
 * knew, counts no tokens: that is a copy, under another id, of the answer in the parent, which counts them. Pure.
 */
export function withoutCaller(spine: readonly Draft[], call: string | undefined): readonly Draft[] {
  const at = call === undefined ? -1 : messageWith(spine, call);
  const draft = spine[at];
  if (draft === undefined) return spine;
  const { meta: { usage: _, ...meta } = {}, ...answer } = wholeDraft(draft);
  return spine.with(at, { ...answer, meta });
}

/** Each call has a result, or what stands for it. */
function resultOf(spine: readonly Draft[], call: string): number {
  return spine.findIndex((draft) => {
    // Its key has the id of the call: of others the content need not be read.
    if (draft.kind !== 'tool-result' || draft.key?.includes(keyPart(call)) !== true) return false;
    return isObject(draft.payload) && draft.payload.toolCallId === call;
  });
}
