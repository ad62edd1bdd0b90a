import type { RunEngine } from '@tapedeck/runtime';
import type { QueueState } from '@tapedeck/runtime/pg-boss';
import { endAsInterrupted } from '../blocked.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { shellWord } from '../escape.ts';
import type { Home } from '../home.ts';
import { type Address, queueDriver, withDriver } from '../server-home.ts';

/** After how many milliseconds it is looked whether a worker runs the first child, and how often after that. */
const [firstLookMs, nextLookMs] = [3_000, 15_000];
/** How often it is looked whether a command that was interrupted can still stop its children, in milliseconds. */
const stopLookMs = 250;

/**
 * The address of a home whose children workers can run.
 * @throws UsageError for a home in files
 */
export function serverOf({ server, name }: Home, act: string): Address {
  if (server !== undefined) return server;
  throw new UsageError(
    `cannot ${act}: the tapes of '${name}' are in a file, and workers need a home on a server`,
    {
      data: { home: name },
      hint: `copy it with: tape copy ${shellWord(name)} postgres://HOST/DATABASE; and name that with --home or TAPE_HOME`,
    },
  );
}

/** What the workers of a home have to do, and who they are. */
export async function queueOf({ given, shown }: Address): Promise<QueueState> {
  return await withDriver(shown, async () => await (await queueDriver(shown)).queueState(given));
}

/** What the children wait for; undefined while a worker is there. */
async function awaitedBy(server: Address): Promise<'worker' | 'server' | undefined> {
  try {
    return (await queueOf(server)).workers.length === 0 ? 'worker' : undefined;
  } catch {
    return 'server';
  }
}

/** Says what the children wait for, unless that was said before. */
export async function saysAwaited(
  server: Address,
  { home, status }: Pick<Context, 'home' | 'status'>,
  said: Set<string> = new Set(),
): Promise<void> {
  const awaited = await awaitedBy(server);
  if (awaited === undefined || said.has(awaited)) return;
  said.add(awaited);
  if (awaited === 'server') {
    status(`The server of ${home.name} does not answer now, and is asked again`);
    return;
  }
  status(`No worker runs the children of ${home.name}: they wait for one`);
  status('Hint: start one with: tape worker');
}

/**
 * The engine that an option names, for a command that starts children and waits for them; undefined for that of this process.
 * Says once when no worker is there, or the server does not answer.
 * @throws UsageError for a home in files; NoDriverError
 */
export async function engineFor(
  name: string | undefined,
  context: Pick<Context, 'home' | 'status' | 'io'>,
): Promise<RunEngine | undefined> {
  if (name !== 'pg-boss') return undefined;
  const server = serverOf(context.home, 'use --engine pg-boss');
  const { shown, given } = server;
  const { pgBoss } = await queueDriver(shown);
  const engine = pgBoss(given);
  const { startBeside } = engine;
  const said = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let stopping: NodeJS.Timeout | undefined;
  let isOver = false;
  const begin = () => {
    lookIn(firstLookMs);
    stopping ??= endWhenGone(server, context);
  };
  const lookIn = (ms: number) => {
    timer ??= setTimeout(async () => {
      await saysAwaited(server, context, said);
      timer = undefined;
      if (!isOver) lookIn(nextLookMs);
    }, ms).unref();
  };
  return {
    ...engine,
    work: async (handler) => await withDriver(shown, async () => await engine.work(handler)),
    start: async (run) => {
      begin();
      await engine.start(run);
    },
    ...(startBeside !== undefined && {
      startBeside: async (depth) => {
        begin();
        return await startBeside(depth);
      },
    }),
    stop: async (o) => {
      isOver = true;
      clearTimeout(timer);
      // This can wait for a server that has gone, too.
      await engine.stop(o);
      clearInterval(stopping);
    },
  };
}

/** Ends a command that was interrupted when the server of its children is away: without it, they cannot be stopped. */
function endWhenGone(
  server: Address,
  { home, status, io }: Pick<Context, 'home' | 'status' | 'io'>,
): NodeJS.Timeout {
  let isAsking = false;
  return setInterval(async () => {
    if (!io.interrupted || isAsking) return;
    isAsking = true;
    if ((await awaitedBy(server)) === 'server') {
      status(`Interrupted: the server of ${home.name} does not answer, and the children are left to workers`);
      endAsInterrupted();
    }
    isAsking = false;
  }, stopLookMs).unref();
}
