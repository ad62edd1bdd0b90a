import PQueue from 'p-queue';

/** A session to be run, by whoever runs sessions. */
export interface RunSpec {
  /** The session's name: starting the same id twice runs it once. */
  readonly id: string;
  /** How many forks lie between it and a root. */
  readonly depth: number;
  readonly parent?: string;
  /** Higher comes first (default 0). */
  readonly priority?: number;
}

/** Who runs children. Results are read from their tapes, never from the engine. */
export interface RunEngine {
  start(run: RunSpec): Promise<void>;
  work(handler: (run: RunSpec, signal: AbortSignal) => Promise<void>): Promise<void>;
  cancel(id: string): Promise<void>;
  stop(o?: { drain?: boolean }): Promise<void>;
}

/**
 * Runs children in this process, so many of each depth at a time: one that waits for its own children does not keep them from
 * being run. Those of a higher priority come first.
 */
export function inProcessEngine({ concurrency = 4 }: { concurrency?: number } = {}): RunEngine {
  const queues = new Map<number, PQueue>();
  const runs = new Map<string, AbortController>();
  let handle: (run: RunSpec, signal: AbortSignal) => Promise<void> = async () => {};
  const queueOf = (depth: number) => {
    const queue = queues.get(depth) ?? new PQueue({ concurrency });
    queues.set(depth, queue);
    return queue;
  };
  return {
    async start(run) {
      if (runs.has(run.id)) return;
      const controller = new AbortController();
      runs.set(run.id, controller);
      const work = queueOf(run.depth).add(
        async () => {
          try {
            await handle(run, controller.signal);
          } finally {
            runs.delete(run.id);
          }
        },
        { priority: run.priority ?? 0 },
      );
      // The handler records its failures on the tape, where those who wait look.
      work.catch(() => {});
    },
    async work(handler) {
      handle = handler;
    },
    async cancel(id) {
      runs.get(id)?.abort(new Error('cancelled'));
    },
    async stop({ drain = false } = {}) {
      if (!drain) for (const controller of runs.values()) controller.abort(new Error('stopped'));
      await Promise.all([...queues.values()].map((queue) => queue.onIdle()));
    },
  };
}
