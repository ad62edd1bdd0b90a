import type { Draft } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/**
 * An entry of Claude Code as earlier versions wrote it: what they wrote stays as it is. Undefined for all that is written today
 * as it was then. Pure.
 */
export function earlierForm(draft: Draft): Draft | undefined {
  return draft.mark === 'boundary' ? boundaryWithDetails(draft) : placeless(draft);
}

/** A boundary with its details in the state, which views show. */
function boundaryWithDetails(draft: Draft): Draft | undefined {
  const { trigger, tokens_before: tokens, ...meta } = draft.meta ?? {};
  const state = isObject(draft.payload) ? draft.payload.state : undefined;
  if (!isObject(state) || (trigger === undefined && tokens === undefined)) return undefined;
  const details = {
    ...(trigger !== undefined && { trigger }),
    ...(tokens !== undefined && { pre_tokens: tokens }),
  };
  return { ...draft, payload: { state: { ...state, ...details } }, meta };
}

/** A message of a subagent that says nothing of where it was written, as those nested in the records of its session did. */
function placeless(draft: Draft): Draft | undefined {
  const { place, version, ...meta } = draft.meta ?? {};
  return place === undefined && version === undefined ? undefined : { ...draft, meta };
}
