/**
 * What several verbs do with a session: find it by its name, make it, follow a run, send and wait, merge, check. These files
 * take a `Context` and print. They may import `config`, `output`, `options` and what is below those, and know no verb.
 */

import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DeckConfig, Sent, Session } from '@tapedeck/runtime';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { deckConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';
import type { ModelArgs } from '../options/model.ts';
import { exitOf, resultJson } from '../output/run.ts';
import { printAll } from './background.ts';
import { openDeckAt } from './open-deck.ts';

/** Something that is left for a session: a message, or the answer to a call. */
export interface Sending {
  readonly store: SqliteTapeStore;
  /** The session's name. */
  readonly session: string;
  /** What it is run with here: see `configUnlessRun`. */
  readonly config: DeckConfig | undefined;
  /** Leaves it. Repeating that leaves nothing more; with `takeUp` it is taken up here, if nobody else does by now. */
  readonly send: (session: Session, takeUp: boolean) => Promise<Sent>;
  /** What it is called: `the message`. */
  readonly what: string;
}

/** What a verb that leaves something is told of where, how, and for how many seconds it waits until another process takes it up. */
export interface SendingArgs extends ModelArgs {
  readonly name: string;
  readonly wait: number;
}

/**
 * What a session is run with here; nothing while another process runs it. Then no configuration is loaded, whose code nobody may
 * have allowed, for a run that is not done here.
 */
export async function configUnlessRun(args: SendingArgs, context: Context): Promise<DeckConfig | undefined> {
  const isRun =
    existsSync(context.home.db) &&
    (await context.reading(async (store) => isOwned(store, store.find(args.name)?.id)));
  return isRun ? undefined : await usableConfig(args, context);
}

async function usableConfig(args: ModelArgs, context: Context): Promise<DeckConfig> {
  const config = await deckConfig(args, context);
  const { assertModel } = await import('@tapedeck/runtime');
  if (config.model !== undefined) await assertModel(config.model, context.io.env);
  return config;
}

/**
 * Leaves something for a session, and prints the runs that this starts here. When another process is running the session, or
 * nothing can run it here, it says so, and ends as accepted.
 */
export async function sendAndFollow(sending: Sending, args: SendingArgs, context: Context): Promise<number> {
  const { store, what } = sending;
  await using decks = new AsyncDisposableStack();
  const { deck, session, sent, started } = await leave(sending, { args, context, decks });
  const runs = started === undefined ? [] : await printAll(started.run, { deck, session }, context);
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
    json: { ...told, state: stateOf(sent, { waits, others: runs.length }) },
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

/** What became of it by now: one that waited and does no more was taken up. */
function stateOf({ state }: Sent, { waits, others }: { waits: boolean; others: number }): Sent['state'] {
  if (!waits) return state === 'queued' ? 'started' : state;
  return others > 0 ? 'queued' : state;
}

/** Leaves it; while another process has the session, waits. `started`, in an object: a run is awaited for its result. */
async function leave(
  sending: Sending,
  { args, context, decks }: { args: SendingArgs; context: Context; decks: AsyncDisposableStack },
) {
  const { store } = sending;
  const { io } = context;
  let { config } = sending;
  const open = async () => {
    const deck = decks.use(await openDeckAt(config ?? {}, store, context));
    return { deck, session: await deck.session(sending.session) };
  };
  let { deck, session } = await open();
  const deadline = performance.now() + args.wait * 1000;
  let wasOwned = true;
  for (let sent = await sending.send(session, config !== undefined); ; ) {
    // What had been waiting longer comes first, in this process too.
    const run = sent.run ?? session.attach();
    if (run !== undefined) return { deck, session, sent, started: { run } };
    if (!isWaiting(store, session.id, sent.id)) return { deck, session, sent };
    const isRun = isOwned(store, session.id);
    if (!isRun && wasOwned) {
      if (config === undefined) {
        config = await usableConfig(args, context);
        ({ deck, session } = await open());
      }
      sent = await sending.send(session, true);
    } else if (performance.now() >= deadline) return { deck, session, sent };
    else await sleep(pollMs, undefined, { signal: io.signal });
    wasOwned = isRun;
  }
}

const pollMs = 50;

function isOwned(store: SqliteTapeStore, session: string | undefined): boolean {
  return store.owners().some(({ id }) => id === session);
}

function isWaiting(store: SqliteTapeStore, session: string, item: string): boolean {
  return store.inbox(session).some(({ id }) => id === item);
}
