import { AsyncLocalStorage } from 'node:async_hooks';
import type { Meta } from '@tapedeck/tape';
import type { Beside } from '@tapedeck/tape/store';
import PQueue from 'p-queue';
import { defaultLimits } from '../config/config.ts';
import type { RunOptions } from '../run/options.ts';

/** A session that an engine runs. */
export interface RunSpec {
  /** The session's name: starting the same id twice runs it once. */
  readonly id: string;
  /** The number of forks between it and its root. */
  readonly depth: number;
  readonly parent?: string;
  /** Higher priorities run first (default 0). */
  readonly priority?: number;
  /** What another process has to know, for an engine that runs children elsewhere. It is JSON. */
  readonly order?: RunOrder;
}

/** A run that another process carries out. All else it finds on the tapes. */
export interface RunOrder {
  /** The session's ULID, and that of its parent. */
  readonly session: string;
  readonly parent: string;
  /** The span that it is below, as W3C Trace Context writes it. */
  readonly traceparent?: string;
  /** The options of the run that no tape has. */
  readonly options?: Pick<RunOptions, 'maxSteps' | 'useTools' | 'settings'> & { readonly model?: string };
  /** The message of a child that is resumed. The key says whether its tape has it. */
  readonly message?: { readonly text: string; readonly key: string; readonly meta: Meta };
  /** The process that started it merges its result. Default: the process that first sees its end. */
  readonly isMergedByStarter?: true;
}

/**
 * Runs child sessions. Their results are read from their tapes, never from the engine.
 *
 * @example
 * ```ts
 * import { inProcessEngine, openDeck, type RunEngine } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * const inside = inProcessEngine();
 * const engine: RunEngine = {
 *   ...inside,
 *   async start(run) {
 *     await inside.start({ ...run, priority: 1 });
 *   },
 * };
 * const store = openTapeStore(':memory:');
 * await using deck = await openDeck({ store, model: 'script:answers.json', engine });
 * const main = await deck.session('main');
 * console.log((await main.delegate('Check the tests.'))[0].status); // completed
 * ```
 */
export interface RunEngine {
  /**
   * Children can run in other processes: who starts one waits until its tape has ended. Absent: `start` runs them in this
   * process.
   */
  readonly isElsewhere?: true;
  /** Queues a run. Starting an id again, before its run ended, does nothing. */
  start(run: RunSpec): Promise<void>;
  /**
   * Prepares a start that the database of the store commits together with the fork of the child: a process that dies
   * between the two leaves both or neither. Absent where the queue is not in that database.
   */
  startBeside?(depth: number): Promise<(run: RunSpec) => Beside>;
  /** Sets the function that runs a session. The deck calls this once, when it opens. */
  work(handler: (run: RunSpec, signal: AbortSignal) => Promise<void>): Promise<void>;
  /**
   * Aborts the signal of a run. An unknown id is ignored. Where runs are elsewhere, the id is the session's ULID, and
   * `message` the key of the message of a child that is resumed: another run of the child goes on.
   */
  cancel(id: string, message?: string): Promise<void>;
  /**
   * Resolves when no run is left. Without `drain` it aborts them first. Where runs are elsewhere, it ends none of them:
   * others continue what this process does not finish, with `drain` within a while.
   */
  stop(o?: { drain?: boolean }): Promise<void>;
}

/**
 * Runs children in this process, at most `concurrency` of each depth at once. Depths are counted separately,
 * so that a child that waits for its own children does not block them. Higher priorities run first. The
 * default is that of `limits.concurrentChildren`.
 *
 * @example
 * ```ts
 * import { inProcessEngine, openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * const engine = inProcessEngine({ concurrency: 2 });
 * const store = openTapeStore(':memory:');
 * await using deck = await openDeck({ store, model: 'script:answers.json', engine });
 * const main = await deck.session('main');
 * console.log((await main.delegate(['Check the tests.', 'Check the changelog.'])).length); // 2
 * ```
 */
export function inProcessEngine({
  concurrency = defaultLimits.concurrentChildren,
}: {
  concurrency?: number;
} = {}): RunEngine {
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
        AsyncLocalStorage.bind(async () => {
          try {
            await handle(run, controller.signal);
          } finally {
            runs.delete(run.id);
          }
        }),
        { priority: run.priority ?? 0 },
      );
      // The handler records its failures on the tape, where the callers that wait read them.
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
