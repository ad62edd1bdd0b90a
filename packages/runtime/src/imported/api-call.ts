import type { Draft } from '@tapedeck/tape';
import { isObject, storedTexts } from '@tapedeck/tape/internal';
import { text } from '../plan/text.ts';
import { shortHash } from './short-hash.ts';

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
export function apiCallOf(answer: Pick<Draft, 'meta' | 'payload'>): ApiCall | undefined {
  const request = requestOf(answer);
  return request === undefined ? undefined : { request, response: text(answer.meta?.response) };
}

/**
 * What the request of an answer is known by: the id that the provider gave it or, where the record names none, when which model
 * answered, and the id of the answer, since several can come in one millisecond. Where there is neither id, what it says takes
 * their place: some programs write whole seconds. All copies of an answer have the same; so can an answer of another call. Pure.
 */
export function requestOf({ meta, payload }: Partial<Pick<Draft, 'meta' | 'payload'>>): string | undefined {
  const { requestId, response, model, timestamp } = meta ?? {};
  if (typeof requestId === 'string') return requestId;
  if (typeof model !== 'string' || typeof timestamp !== 'string') return undefined;
  return [model, timestamp, text(response) ?? saidBy(payload)].filter((part) => part !== undefined).join(' ');
}

/** What the content of an answer is known by; undefined for one that was erased. */
function saidBy(payload: unknown): string | undefined {
  if (!isObject(payload)) return undefined;
  return shortHash(storedTexts({ kind: 'message', payload })?.payload ?? '');
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
