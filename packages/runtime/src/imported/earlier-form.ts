import type { Draft } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/**
 * A boundary of Claude Code as earlier versions wrote it, with its details in the state, which views show: what they wrote stays
 * as it is. Undefined for all that is written today as it was then. Pure.
 */
export function earlierForm(draft: Draft): Draft | undefined {
  const { trigger, tokens_before: tokens, ...meta } = draft.meta ?? {};
  const state = isObject(draft.payload) ? draft.payload.state : undefined;
  if (draft.mark !== 'boundary' || !isObject(state)) return undefined;
  if (trigger === undefined && tokens === undefined) return undefined;
  const details = {
    ...(trigger !== undefined && { trigger }),
    ...(tokens !== undefined && { pre_tokens: tokens }),
  };
  return { ...draft, payload: { state: { ...state, ...details } }, meta };
}
