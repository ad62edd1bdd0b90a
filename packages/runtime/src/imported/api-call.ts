import type { Draft } from '@tapedeck/tape';
import { text } from '../plan/text.ts';

/** The call of a model's API to which a message is the answer. */
export interface ApiCall {
  readonly request: string;
  /** The id of the answer. Earlier versions kept it only where the record names no request. */
  readonly response: string | undefined;
}

/**
 * What identifies the call of an answer: its request and the id of the answer together. A proxy may number its requests anew, or
 * give one id to all of them. Pure.
 */
export function apiCallOf(answer: Pick<Draft, 'meta'>): ApiCall | undefined {
  const request = requestOf(answer);
  return request === undefined ? undefined : { request, response: text(answer.meta?.response) };
}

/**
 * What the request of an answer is known by: the id that the provider gave it or, where no record names that, when which model
 * answered, and the id of the answer. Several answers can come in one millisecond. All copies of an answer have the same; so can
 * an answer of another call. Pure.
 */
export function requestOf({ meta }: Pick<Draft, 'meta'>): string | undefined {
  const { requestId, response, model, timestamp } = meta ?? {};
  if (typeof requestId === 'string') return requestId;
  if (typeof model !== 'string' || typeof timestamp !== 'string') return undefined;
  return [model, timestamp, ...(typeof response === 'string' ? [response] : [])].join(' ');
}

/** Of the answers to the request of a call those of the call: with its id or, where there are none, without any. Pure. */
export function answersOf<Answer extends Pick<ApiCall, 'response'>>(
  { response }: ApiCall,
  answers: readonly Answer[] = [],
): readonly Answer[] {
  if (response === undefined) return answers;
  const own = answers.filter((answer) => answer.response === response);
  return own.length > 0 ? own : answers.filter((answer) => answer.response === undefined);
}
