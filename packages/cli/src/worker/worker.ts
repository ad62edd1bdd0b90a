/**
 * A process that runs the children of a home on a server. `worker.ts` opens its deck and stays until it is stopped, `report.ts`
 * says what it does, `health.ts` whether one is alive. Imports `config`, `session` and what lies below.
 */
import type { RunEngine } from '@tapedeck/runtime';
import type { LoadedConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { makeHome } from '../home.ts';
import { type Address, openStoreOnServer, queueDriver, sayDurability, withDriver } from '../server-home.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { Report } from './report.ts';

/** How to run a worker. */
interface Asked {
  readonly server: Address;
  readonly config: LoadedConfig;
  /** How many children of each depth it runs at once. */
  readonly concurrency: number;
  readonly maxDepth: number;
}

/** Runs children until a signal stops the process, and returns its exit code. */
export async function work(
  { server, config, concurrency, maxDepth }: Asked,
  context: Context,
): Promise<number> {
  const { io, home, options, status } = context;
  if (!Number.isFinite(maxDepth))
    throw new UsageError('cannot run a worker: limits.max_depth has no limit, and each depth has a queue');
  const stopped = Promise.withResolvers<void>();
  using _stop = io.onStop(() => {
    status('Stopping: takes no more children, and finishes what runs');
    stopped.resolve();
  });
  sayDurability(io, options);
  makeHome(home);
  await using store = await openStoreOnServer(
    { server, ...(home.base !== undefined && { base: home.base }) },
    io,
    { durability: options.durability, ...(io.redact !== undefined && { redact: io.redact }) },
  );
  const { pgBoss } = await queueDriver(server.shown);
  const report = new Report(store, context, stopped.resolve);
  const engine = pgBoss(server.given, {
    concurrency,
    maxDepth,
    onError: (error) => report.trouble(error),
  });
  const open = Promise.withResolvers<void>();
  // All of its connections may be lost for a while.
  const alive = setInterval(() => {}, 60_000);
  try {
    await using _deck = await openDeckAt(
      { ...config, engine: reported(report, { engine, server, open: open.promise }) },
      store,
      context,
    );
    status(`Ready: runs up to ${concurrency} children of each depth of ${home.name}`);
    open.resolve();
    await stopped.promise;
  } finally {
    clearInterval(alive);
  }
  await report.end();
  return exit.done;
}

/** An engine that says what it runs, once the deck is open. */
function reported(
  report: Report,
  {
    engine,
    server: { shown },
    open,
  }: { readonly engine: RunEngine; readonly server: Address; readonly open: Promise<void> },
): RunEngine {
  return {
    ...engine,
    work: async (handler) =>
      await withDriver(shown, async () =>
        engine.work(async (run, signal) => {
          await open;
          await report.started(run);
          try {
            await handler(run, signal);
          } catch (error) {
            await report.gaveBack(run, error);
            throw error;
          }
          await report.ended(run);
        }),
      ),
  };
}
