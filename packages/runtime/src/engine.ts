import PQueue from 'p-queue';

/** A session to be run, by whoever runs sessions. */
export interface RunSpec {
  /** The session's name: starting the same id twice runs it once. */
  readonly id: string;
  /** How many forks lie between it and a root. */
  readonly depth: number;
  readonly parent?: string;
}

/** Who runs children. Results are read from their tapes, never from the engine. */
export interface RunEngine {
  start(run: RunSpec): Promise<void>;
  work(handler: (run: RunSpec, signal: AbortSignal) => Promise<void>): Promise<void>;
  cancel(id: string): Promise<void>;
  stop(o?: { drain?: boolean }): Promise<void>;
}

/** Runs children in this process, so many at a time. */
export function inProcessEngine({ concurrency = 4 }: { concurrency?: number } = {}): RunEngine {
  const queue = new PQueue({ concurrency });
  const runs = new Map<string, AbortController>();
  let handle: (run: RunSpec, signal: AbortSignal) => Promise<void> = async () => {};
  return {
    async start(run) {
      if (runs.has(run.id)) return;
      const controller = new AbortController();
      runs.set(run.id, controller);
      const work = queue.add(async () => {
        try {
          await handle(run, controller.signal);
        } finally {
          runs.delete(run.id);
        }
      });
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
      await queue.onIdle();
    },
  };
}
