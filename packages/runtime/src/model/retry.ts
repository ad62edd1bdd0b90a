import { messageOf } from '../errors.ts';
import { APICallError } from './model.ts';

/** Whether a model call that failed may do better when it is made again: the server was busy, the network was not there. */
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

/** The longest that a server's own word on when to come again is heeded, in milliseconds. */
const askedMaxMs = 60_000;

/** How long to wait before the attempt of a number, from 1: as the server asks, else twice as long each time. */
export function retryDelay(error: unknown, attempt: number, firstMs: number): number {
  return askedDelay(error) ?? firstMs * 2 ** (attempt - 1);
}

function askedDelay(error: unknown): number | undefined {
  if (!APICallError.isInstance(error)) return undefined;
  const { 'retry-after-ms': ms, 'retry-after': seconds } = error.responseHeaders ?? {};
  const asked = ms !== undefined ? Number(ms) : seconds !== undefined ? Number(seconds) * 1_000 : Number.NaN;
  return asked >= 0 && asked <= askedMaxMs ? asked : undefined;
}

/** How providers say that a request was larger than their model can take. */
const overflow =
  /context[_ ]length|context window|maximum context|prompt is too long|too many (?:input )?tokens|input (?:is|was) too long|exceeds? the (?:maximum|available|context)|input token count/i;

/** Whether a model refused a request because it was too large for it. */
export function isOverflow(error: unknown): boolean {
  if (!APICallError.isInstance(error)) return overflow.test(messageOf(error));
  if (error.statusCode === 413) return true;
  return error.statusCode === 400 && overflow.test(`${error.message} ${error.responseBody ?? ''}`);
}
