import { setTimeout as sleep } from 'node:timers/promises';
import type { Sent, Session } from '@tapedeck/runtime';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { exit } from './errors.ts';
import { exitOf, printRuns, resultJson } from './output/run.ts';
import type { Context } from './verb.ts';

/** Something that is left for a session: a message, or the answer to a call. */
export interface Sending {
  readonly store: SqliteTapeStore;
  readonly session: Session;
  /** Leaves it. Repeating that leaves nothing more, and takes it up if nobody else does by now. */
  readonly send: () => Promise<Sent>;
  /** How long to wait for another process to take it up, in milliseconds. */
  readonly waitMs: number;
  /** What it is called: `the message`. */
  readonly what: string;
}

/**
 * Leaves something for a session, and prints the runs that this starts here. When another process is running the session, or
 * nothing can run it here, it says so, and ends as accepted.
 */
export async function sendAndFollow(sending: Sending, context: Context): Promise<number> {
  const { session, store, what } = sending;
  const { sent, started } = await leave(sending, context);
  const runs = started === undefined ? [] : await printRuns(started.run, context);
  const own = runs.find(({ run }) => run.took.includes(sent.id));
  const told = { session: session.name, id: sent.id };
  if (own !== undefined) {
    const others = runs.filter((one) => one !== own).map(({ result }) => result);
    if (context.options.json === true || context.options.jsonl === true)
      await context.answer({
        json: { ...told, state: 'started', ...resultJson(own.result, others) },
        human: '',
      });
    return context.io.interrupted ? exit.interrupted : exitOf(own.result.finish);
  }
  const waits = isWaiting(store, session.id, sent.id);
  const owner = store.owners().find(({ id }) => id === session.id)?.owner;
  const who = owner?.pid === undefined ? 'another process' : `process ${owner.pid}`;
  await context.answer({
    json: { ...told, state: runs.length > 0 ? 'queued' : sent.state },
    quiet: sent.id,
    human: !waits
      ? `${session.name} has ${what}`
      : owner === undefined
        ? `Left ${what} in the inbox of ${session.name}: nobody is running it`
        : `Left ${what} in the inbox of ${session.name}: ${who} is running it`,
  });
  if (context.io.interrupted) return exit.interrupted;
  if (!waits) return exit.done;
  if (owner === undefined) context.status(`Hint: go on with: tape run ${session.name}`);
  return exit.accepted;
}

/** Leaves it; while another process has it, waits. `started`, in an object: a run is awaited for its result. */
async function leave({ store, session, send, waitMs }: Sending, { io }: Context) {
  const deadline = performance.now() + waitMs;
  let wasOwned = true;
  for (let sent = await send(); ; ) {
    // What had been waiting longer comes first, in this process too.
    const run = sent.run ?? session.attach();
    if (run !== undefined) return { sent, started: { run } };
    if (!isWaiting(store, session.id, sent.id) || performance.now() >= deadline) return { sent };
    const isOwned = store.owners().some(({ id }) => id === session.id);
    if (wasOwned && !isOwned) sent = await send();
    else await sleep(pollMs, undefined, { signal: io.signal });
    wasOwned = isOwned;
  }
}

const pollMs = 50;

function isWaiting(store: SqliteTapeStore, session: string, item: string): boolean {
  return store.inbox(session).some(({ id }) => id === item);
}
