import { setTimeout as sleep } from 'node:timers/promises';

/** How long to wait for a piece of work. */
export interface Patience {
  /** Timeout in milliseconds; `Infinity` for no limit. */
  readonly timeoutMs: number;
  /** How long to wait after an abort for work that ignores the signal, in milliseconds. */
  readonly graceMs: number;
  readonly signal: AbortSignal;
}

/**
 * Resolves with the result of the work, `timeout`, or `aborted` after an abort and its grace, whichever is
 * first.
 */
export async function within<T>(
  work: Promise<T>,
  { timeoutMs, graceMs, signal }: Patience,
): Promise<T | 'timeout' | 'aborted'> {
  const over = new AbortController();
  const limit = (ms: number) => sleep(Math.min(ms, timerMaxMs), undefined, { signal: over.signal });
  const timeout = Number.isFinite(timeoutMs) ? [limit(timeoutMs).then(() => 'timeout' as const)] : [];
  const aborted = aborting(signal, over.signal)
    .then(() => limit(graceMs))
    .then(() => 'aborted' as const);
  for (const timer of [...timeout, aborted]) timer.catch(() => {});
  try {
    return await Promise.race([work, ...timeout, aborted]);
  } finally {
    over.abort();
  }
}

/** The longest timer of Node.js, in milliseconds. */
const timerMaxMs = 2 ** 31 - 1;

function aborting(signal: AbortSignal, over: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  else signal.addEventListener('abort', () => resolve(), { once: true, signal: over });
  return promise;
}
