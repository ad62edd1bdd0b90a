import PQueue from 'p-queue';

/**
 * Makes model calls in queues, one for each provider. They are counted here and not as sessions are run: a session that waits
 * for its children makes none, so a full queue stops nobody for ever.
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
    return async (call) => await queue.add(call);
  };
}
