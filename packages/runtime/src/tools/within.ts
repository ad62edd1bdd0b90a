import { setTimeout as sleep } from 'node:timers/promises';

/** How long a piece of work is waited for. */
export interface Patience {
  /** In milliseconds; `Infinity`: as long as it takes. */
  readonly timeoutMs: number;
  /** How long work that does not heed the signal is waited for after an abort, in milliseconds (G74). */
  readonly graceMs: number;
  readonly signal: AbortSignal;
}

/** What comes first: the end of the work, the end of its time, or an abort and the grace after it. */
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

/** The longest that a timer of Node can take. */
const timerMaxMs = 2 ** 31 - 1;

function aborting(signal: AbortSignal, over: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  else signal.addEventListener('abort', () => resolve(), { once: true, signal: over });
  return promise;
}
