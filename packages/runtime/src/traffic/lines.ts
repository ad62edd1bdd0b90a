import { isoTime } from '@tapedeck/tape/internal';
import { messageOf } from '../errors.ts';
import { type Cover, coveredPieces } from './covered.ts';
import type { ObservedCall } from './observed-call.ts';

/** The most characters of a line. Of a longer one the size is kept. */
const lineMax = 16 * 1024 * 1024;

/**
 * The lines of a call that has ended, without secrets: its request, the response, each piece of the answer, and the end.
 * Pure.
 */
export function* linesOf(call: ObservedCall, cover: Cover): Generator<string> {
  const { id, provider, model, options } = call.head;
  const lineOf = (at: number, type: string, fields: object) =>
    lineText({ at: isoTime(at), call: id, type }, fields);
  const { body: refused, ...failure } = call.end?.type === 'error' ? failureOf(call.end.error) : noFailure;
  const body = parsed(call.body ?? refused);
  yield lineOf(call.at, 'request', {
    ...(provider !== undefined && { provider }),
    model,
    ...cover(body === undefined ? { options: withoutOwn(options) } : { body }),
  });
  if (call.response !== undefined) {
    const { at, headers, body: answer } = call.response;
    yield lineOf(
      at,
      'response',
      cover({ ...withoutCookies(headers), ...(answer !== undefined && { body: answer }) }),
    );
  }
  const pieces = call.parts.map(({ part }) => (part.type === 'raw' ? { chunk: part.rawValue } : { part }));
  for (const [i, fields] of coveredPieces(pieces, cover).entries())
    yield lineOf(call.parts[i]?.at ?? call.at, 'piece', fields);
  if (call.end !== undefined) yield lineOf(call.end.at, call.end.type, cover(failure));
}

/** A body as a value, also where a package gives its text. */
function parsed(body: unknown): unknown {
  try {
    return typeof body === 'string' ? JSON.parse(body) : body;
  } catch {
    return body;
  }
}

const noFailure: { readonly body?: unknown } = {};

/** What the error of a call says of its request and of the response. */
function failureOf(error: unknown): { readonly message: string; readonly body?: unknown } {
  const { statusCode, responseHeaders, responseBody, requestBodyValues } = (
    typeof error === 'object' && error !== null ? error : {}
  ) as Readonly<Record<string, unknown>>;
  return {
    message: messageOf(error),
    ...(statusCode !== undefined && { status: statusCode }),
    ...withoutCookies(responseHeaders),
    ...(responseBody !== undefined && { response: responseBody }),
    ...(requestBodyValues !== undefined && { body: requestBodyValues }),
  };
}

/** Cookies are secrets of a connection. */
function withoutCookies(headers: unknown): { readonly headers?: object } {
  if (typeof headers !== 'object' || headers === null) return {};
  return { headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !/cookie/i.test(name))) };
}

/** The options of a call without what is no part of its request. Headers can have keys. */
function withoutOwn(options: object): object {
  const { abortSignal: _, headers: __, includeRawChunks: ___, ...rest } = options as Record<string, unknown>;
  return rest;
}

function lineText(head: object, fields: object): string {
  try {
    const line = JSON.stringify({ ...head, ...fields }, bytesAsBase64);
    if (line.length <= lineMax) return line;
    return JSON.stringify({ ...head, left_out: `${line.length} characters` });
  } catch (error) {
    return JSON.stringify({ ...head, left_out: messageOf(error) });
  }
}

function bytesAsBase64(_: string, value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
}
