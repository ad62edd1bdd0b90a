import { AsyncLocalStorage } from 'node:async_hooks';
import PQueue from 'p-queue';

/**
 * Queues of model calls, one for each provider. The limit counts calls, not sessions: a session that waits
 * for its children makes no call, so a full queue cannot deadlock.
 */
export function callQueues(
  limit: number | Readonly<Record<string, number>>,
): (provider: string | undefined) => <T>(call: () => Promise<T>) => Promise<T> {
  const queues = new Map<string, PQueue>();
  return (provider = '') => {
    const name = provider.split('.')[0] ?? '';
    const most = typeof limit === 'number' ? limit : (limit[name] ?? Number.POSITIVE_INFINITY);
    if (most === Number.POSITIVE_INFINITY) return async (call) => await call();
    const queue = queues.get(name) ?? new PQueue({ concurrency: most });
    queues.set(name, queue);
    // A queue starts a call where another ended.
    return async (call) => await queue.add(AsyncLocalStorage.bind(call));
  };
}
