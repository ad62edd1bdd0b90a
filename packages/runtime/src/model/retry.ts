import { APICallError } from '@ai-sdk/provider';
import { messageOf } from '../errors.ts';

/** Whether a failure of a model call is transient, for example a busy server or an unreachable network. */
function isPassing(error: unknown): boolean {
  if (APICallError.isInstance(error)) return error.isRetryable;
  const { statusCode, code } = (error ?? {}) as { statusCode?: unknown; code?: unknown };
  if (typeof statusCode === 'number') return statusCode === 408 || statusCode === 429 || statusCode >= 500;
  return typeof code === 'string' && passingCodes.has(code);
}

const passingCodes: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ETIMEDOUT',
  'EPIPE',
  'UND_ERR_SOCKET',
]);

/** Limits of retries, as of a deck. */
export interface RetryLimits {
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly maxRetryAfterMs: number;
}

/**
 * The delay before retry `attempt` (from 1): as the server requests, otherwise doubled each time. Undefined when the
 * call is not to be retried: the failure is lasting, no retry is left, or the server requests a longer delay than the
 * limit. Pure.
 */
export function retryDelay(
  error: unknown,
  { attempt, limits, now }: { readonly attempt: number; readonly limits: RetryLimits; readonly now: number },
): number | undefined {
  if (attempt > limits.retries || !isPassing(error)) return undefined;
  const requested = requestedDelay(error, now);
  if (requested !== undefined) return requested > limits.maxRetryAfterMs ? undefined : requested;
  return limits.retryDelayMs * 2 ** (attempt - 1);
}

/** When a server takes calls again that passes for busy, and whether that is too late to wait for it. */
export interface ComeBack {
  /** ISO 8601. */
  readonly retryAt: string;
  readonly isLate: boolean;
}

/** What a server requests that a call failed at; undefined when it names no time. Pure. */
export function comeBackAfter(
  error: unknown,
  { limits, now }: { readonly limits: Pick<RetryLimits, 'maxRetryAfterMs'>; readonly now: number },
): ComeBack | undefined {
  const delay = isPassing(error) ? requestedDelay(error, now) : undefined;
  if (delay === undefined) return undefined;
  const retryAt = new Date(Math.min(now + delay, latestMs)).toISOString();
  return { retryAt, isLate: delay > limits.maxRetryAfterMs };
}

/** The last time that ISO 8601 writes with a year of four digits. */
const latestMs = Date.UTC(9999, 11, 31);

/** The delay in milliseconds of `retry-after-ms`, or of `retry-after` in seconds or as a date of HTTP. */
function requestedDelay(error: unknown, now: number): number | undefined {
  // An answer that broke off requests nothing.
  if (!APICallError.isInstance(error) || (error.statusCode ?? 0) < 400) return undefined;
  const headers = new Map(
    Object.entries(error.responseHeaders ?? {}).map(([name, value]) => [name.toLowerCase(), value.trim()]),
  );
  const ms = numberOf(headers.get('retry-after-ms'));
  if (ms !== undefined) return ms;
  const after = headers.get('retry-after');
  const seconds = numberOf(after);
  if (seconds !== undefined) return seconds * 1_000;
  const until = dateOf(after);
  // The clock of the server counts, which need not be that of this machine.
  return until === undefined ? undefined : Math.max(0, until - (dateOf(headers.get('date')) ?? now));
}

/** A date of HTTP, which begins with a weekday, in milliseconds since the epoch. */
function dateOf(text: string | undefined): number | undefined {
  const ms =
    text !== undefined && /^(?:mon|tue|wed|thu|fri|sat|sun)/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/** A number that is not negative, in decimal digits. */
function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined;
}

/** How providers report that a prompt exceeds the context window. */
const overflow =
  /context[_ ]length|context window|maximum context|prompt is too long|too many (?:input )?tokens|input (?:is|was) too long|exceeds? the (?:maximum|available|context)|input token count/i;

/** Whether a model refused a prompt as too large. */
export function isOverflow(error: unknown): boolean {
  if (!APICallError.isInstance(error)) return overflow.test(messageOf(error));
  if (error.statusCode === 413) return true;
  return error.statusCode === 400 && overflow.test(`${error.message} ${error.responseBody ?? ''}`);
}
