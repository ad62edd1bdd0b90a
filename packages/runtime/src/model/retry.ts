import { APICallError } from '@ai-sdk/provider';
import { messageOf } from '../errors.ts';

/** Whether a failure of a model call is transient, for example a busy server or an unreachable network. */
export function isPassing(error: unknown): boolean {
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

/** The longest delay that a server may request, in milliseconds; longer ones are ignored. */
const requestedMaxMs = 60_000;

/** The delay before retry `attempt` (from 1): as the server requests, otherwise doubled each time. */
export function retryDelay(error: unknown, attempt: number, firstMs: number): number {
  return requestedDelay(error) ?? firstMs * 2 ** (attempt - 1);
}

function requestedDelay(error: unknown): number | undefined {
  if (!APICallError.isInstance(error)) return undefined;
  const { 'retry-after-ms': ms, 'retry-after': seconds } = error.responseHeaders ?? {};
  const requested =
    ms !== undefined ? Number(ms) : seconds !== undefined ? Number(seconds) * 1_000 : Number.NaN;
  return requested >= 0 && requested <= requestedMaxMs ? requested : undefined;
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
