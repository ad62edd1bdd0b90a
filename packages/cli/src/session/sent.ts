/**
 * Acts on sessions that several verbs share: find, create, follow a run, send and wait, merge, verify. These
 * files receive a `Context` and print. They may import `config`, `output`, `options` and the folders below
 * those, and never a verb.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Deck, Sent, Session } from '@tapedeck/runtime';
import type { HomeStore } from '@tapedeck/tape';
import { deckConfig, type LoadedConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { commandLine } from '../escape.ts';
import { exit } from '../exit.ts';
import { hasDatabase } from '../home.ts';
import type { ModelArgs } from '../options/model.ts';
import { exitOf, resultJson } from '../output/run.ts';
import { findMeant } from '../reference.ts';
import { type Following, printAbove, printAll, reportDelivery, stillWaiting } from './background.ts';
import { openDeckAt } from './open-deck.ts';

/** An item to post to a session: a message, or the answer to a call. */
export interface Sending {
  readonly store: HomeStore;
  /** Name of the session. */
  readonly session: string;
  /** The session above that the user named instead; its runs that follow are shown. */
  readonly above?: string;
  /** Other sessions that get items with it; their runs are shown, too. */
  readonly also?: readonly string[];
  /** The configuration to run it with; see `configUnlessRun`. */
  readonly config: LoadedConfig | undefined;
  /**
   * Posts the item; a repeat posts nothing. With `start`, starts a run here if no other process runs the
   * session.
   */
  readonly send: (session: Session, start: boolean, deck: Deck) => Promise<Sent>;
  /** The item in messages: `the message`. */
  readonly what: string;
}

/** Options of a verb that posts an item; `wait`: seconds to wait until another process takes it. */
export interface SendingArgs extends ModelArgs {
  readonly name: string;
  readonly wait: number;
}

/**
 * The configuration to run a session with; undefined while another process runs it. A configuration may be
 * untrusted code, so it is not loaded for a run in another process.
 * @param creates whether the verb creates a missing session
 */
export async function configUnlessRun(
  args: SendingArgs,
  context: Context,
  { creates }: { readonly creates: boolean },
): Promise<LoadedConfig | undefined> {
  const isRun =
    hasDatabase(context.home) &&
    (await context.reading(async (store) => isOwned(store, findMeant(store, args.name, { creates })?.id)));
  return isRun ? undefined : await usableConfig(args, context);
}

/** The configuration to run sessions with, whose model can be used. */
export async function usableConfig(args: ModelArgs, context: Context): Promise<LoadedConfig> {
  const config = await deckConfig(args, context);
  const { assertModel } = await import('@tapedeck/runtime/internal');
  if (config.model !== undefined)
    await assertModel(config.model, { env: context.io.env, from: config.modelFrom });
  return config;
}

/**
 * Posts an item to a session, and prints the runs that it starts here. When another process runs the session,
 * or this one cannot, reports that and returns `exit.accepted`.
 */
export async function sendAndFollow(sending: Sending, args: SendingArgs, context: Context): Promise<number> {
  const { store, what } = sending;
  await using decks = new AsyncDisposableStack();
  const { deck, session, sent, started } = await post(sending, { args, context, decks });
  const above =
    sending.above === undefined || sending.above === session.name
      ? undefined
      : await deck.session(sending.above);
  const runs =
    started === undefined
      ? []
      : above === undefined
        ? await printAll(started.run, { deck, session }, context)
        : await printAbove(
            [{ run: started.run, name: session.name }, ...(await runsOf(sending, deck, session.name))],
            { deck, above },
            context,
          );
  const taken = runs.find(({ run }) => run.took.includes(sent.id));
  // The run of the session that the user named, if the answer has led to one.
  const own = taken && (runs.findLast(({ result }) => result.session === above?.name) ?? taken);
  const receipt = { session: session.name, id: sent.id };
  if (own !== undefined) {
    const others = runs.filter((one) => one !== own).map(({ result }) => result);
    if (context.options.json === true || context.options.jsonl === true)
      await context.answer({
        json: { ...receipt, state: 'started', ...resultJson(own.result, others) },
        human: '',
      });
    if (context.io.interrupted) return exit.interrupted;
    if (above === undefined || own !== taken) return exitOf(own.result.finish);
    const left = await stillWaiting(deck, above);
    left.forEach(context.status);
    if (left.length > 0) return exit.accepted;
    await reportDelivery(deck, { session, ended: runs }, context);
    return exitOf(own.result.finish);
  }
  const waits = isWaiting(store, session.id, sent.id);
  const owner = store.leases.list().find(({ id }) => id === session.id)?.owner;
  const runner = owner?.pid === undefined ? 'another process' : `process ${owner.pid}`;
  await context.answer({
    json: { ...receipt, state: stateOf(sent, { waits, others: runs.length }) },
    quiet: sent.id,
    human: !waits
      ? `${session.name} has ${what}`
      : owner === undefined
        ? `Posted ${what} to the inbox of ${session.name}: no active run`
        : `Posted ${what} to the inbox of ${session.name}: ${runner} is running it`,
  });
  if (context.io.interrupted) return exit.interrupted;
  if (!waits) return exit.done;
  if (owner === undefined) context.status(`Hint: run it with: ${commandLine('run', [session.name])}`);
  return exit.accepted;
}

/** The runs of the other sessions that got items. */
async function runsOf(
  { also = [], above }: Sending,
  deck: Deck,
  first: string,
): Promise<readonly Following[]> {
  const runs: Following[] = [];
  for (const name of new Set(also)) {
    const run = name === first || name === above ? undefined : (await deck.session(name)).attach();
    if (run !== undefined) runs.push({ run, name });
  }
  return runs;
}

/** The current state of the item: one that was queued and has left the inbox has started. */
function stateOf({ state }: Sent, { waits, others }: { waits: boolean; others: number }): Sent['state'] {
  if (!waits) return state === 'queued' ? 'started' : state;
  return others > 0 ? 'queued' : state;
}

/**
 * Posts the item, and waits while another process runs the session. `started` wraps the run in an object, as
 * a `Run` is a promise.
 */
async function post(
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
  for (let sent = await sending.send(session, config !== undefined, deck); ; ) {
    // The active run may process earlier items first.
    const run = sent.run ?? session.attach();
    if (run !== undefined) return { deck, session, sent, started: { run } };
    if (!isWaiting(store, session.id, sent.id)) return { deck, session, sent };
    const isRun = isOwned(store, session.id);
    if (!isRun && wasOwned) {
      if (config === undefined) {
        config = await usableConfig(args, context);
        ({ deck, session } = await open());
      }
      sent = await sending.send(session, true, deck);
    } else if (performance.now() >= deadline) return { deck, session, sent };
    else await sleep(pollMs, undefined, { signal: io.signal });
    wasOwned = isRun;
  }
}

const pollMs = 50;

function isOwned(store: HomeStore, session: string | undefined): boolean {
  return store.leases.list().some(({ id }) => id === session);
}

function isWaiting(store: HomeStore, session: string, item: string): boolean {
  return store.inbox.list(session).some(({ id }) => id === item);
}
