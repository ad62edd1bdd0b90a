/**
 * A deck: a tape home that is open for running sessions. `open.ts` loads what it needs, `place.ts` checks and opens its
 * home or store, `graph.ts` reads the graph file, `saved.ts` keeps sessions by names, `identities.ts` by keys, `workers.ts` keeps what runs its
 * sessions. Imports `chat` and what lies below.
 */
import { join } from 'node:path';
import type { Elsewhere, Ref, SessionInfo, TapeStore } from '@tapedeck/tape';
import { maskedStore, maskFor, newIds, redactorFor, secretsIn, secretsOf } from '@tapedeck/tape/internal';
import type { SessionInit, SessionQuery } from '@tapedeck/tape/store';
import PQueue from 'p-queue';
import type { ChatHandler, ChatOptions } from '../chat/chat.ts';
import { type DeckConfig, limitsOf, withBuiltins } from '../config/config.ts';
import { parseConfig } from '../config/parse.ts';
import { continueWaiting } from '../delegation/continue.ts';
import { deliverUnattended } from '../delegation/deliver.ts';
import { inProcessEngine, type RunEngine } from '../delegation/engine.ts';
import { messageOf, SessionError } from '../errors.ts';
import type { IncomingDelivery } from '../identity/delivery.ts';
import { patientStore } from '../lease/patient-store.ts';
import { secretsOfServers } from '../mcp/secrets.ts';
import { callQueues } from '../model/call-queues.ts';
import type { CallSettings } from '../model/call-settings.ts';
import type { RuleTexts } from '../permissions/rule.ts';
import type { RecoverOptions, RecoveryReport } from '../recovery/recover.ts';
import { directoryFor } from '../run/place.ts';
import { Worker } from '../run/worker.ts';
import { Child } from '../session/child.ts';
import type { DeckParts } from '../session/parts.ts';
import { Session } from '../session/session.ts';
import type { ToolContext } from '../session/tool-context.ts';
import { openActiveWriter } from '../status/active-writer.ts';
import { openChunkWriter } from '../stream/chunk-writer.ts';
import { titleSession } from '../title/title-session.ts';
import { assertOutsideRun } from '../tools/current-call.ts';
import { RawTraffic } from '../traffic/traffic.ts';
import { type DeckGraph, openDeckGraph } from './graph.ts';
import { type DeckIdentities, deckIdentities, type Routed, routeDelivery } from './identities.ts';
import { keptSettings } from './kept-settings.ts';
import { assertPlace, type OpenedHome, openHome } from './place.ts';
import { type SavedSessions, savedSessions } from './saved.ts';
import { handleStrayErrors, type StrayError } from './stray-errors.ts';
import { Workers } from './workers.ts';

export interface DeckOptions extends DeckConfig {
  /**
   * The tape home: a directory with `tape.db` and `session_graph.jsonl`. The list of active runs is kept
   * there too.
   */
  readonly home?: string;
  /**
   * An open store, used instead of the home's. The deck does not close it, but for one that it was given as a promise:
   * `postgres(url)`.
   */
  readonly store?: TapeStore | Promise<TapeStore>;
  /**
   * The realm of names of the home's sessions: `tape` gives `tape:main`. Default: the one that the home records.
   * Decks with different bases on one home have sessions of their own. With `store`, the store's base counts.
   */
  readonly base?: string;
  /**
   * Whether facts of the home's tapes that can make something run count: models of kind `script:`, approvals, repeats of
   * calls and worktrees. True (default): the program trusts the home; false: only those recorded from now on; else the
   * marks that `openTapeStore` takes. Models that the program passes always count.
   */
  readonly trust?: boolean | Elsewhere;
  /** Runs child sessions. Default: in this process, where those of personas always run. */
  readonly engine?: RunEngine;
  /** Environment with the API keys and base URLs of named models (default `process.env`). */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Where `model` comes from, for the errors of model calls: `$TAPE_MODEL`, a path (default: the deck). */
  readonly modelFrom?: string;
  /** Working directory of the sessions, described in the system prompt. Default: that of the process. */
  readonly cwd?: string;
  readonly newId?: () => string;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /**
   * Keeps the process up when a tool leaves an error that nothing handles, such as a rejection after its end: the
   * error is recorded on the tape, and given to this function. While it is set, a throw of code that is no tool's
   * closes the deck before the process ends. Default: Node.js ends the process at once.
   */
  readonly onStrayError?: (stray: StrayError) => void;
  /** The sessions that `fetch` serves, and to whom. */
  readonly chat?: ChatOptions;
}

/** Properties of a new session. */
export interface NewSession extends Omit<SessionInit, 'settings'> {
  /** The name of its model, until a run names another. */
  readonly model?: string;
  /** Settings of its model calls, until a run names others. */
  readonly settings?: CallSettings;
  /** Its instructions. The deck's project files, skills and environment follow them. Default: those of the deck. */
  readonly instructions?: string;
  /** Names of the tools that it and all sessions below it may call. Default: all of the deck. */
  readonly tools?: readonly string[];
  /** Names of those that its own model may call; the others it only hands on. Default: all. */
  readonly uses?: readonly string[];
  /** Rules for its calls and those of all sessions below it, after those of the deck. */
  readonly rules?: RuleTexts;
  /** Keeps the raw traffic of it and of all sessions below it, unless the deck keeps none. */
  readonly record?: 'raw';
}

/**
 * A tape home opened for running sessions.
 *
 * @example
 * ```ts
 * import { openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await main.send('Plan the release.');
 * await deck.idle();
 * for (const { session, head } of await deck.sessions()) console.log(session, head); // main 3
 * ```
 */
export interface Deck extends AsyncDisposable {
  /** The raw store. Its methods block the thread while they wait for a lock; those of the deck do not. */
  readonly store: TapeStore;
  /** The forks and merges of the home, as the graph file records them. */
  readonly graph: DeckGraph;
  /** The sessions by their names: to list, name, copy and delete them. */
  readonly saved: SavedSessions;
  /** The sessions of keys that say who sends a message. */
  readonly identities: DeckIdentities;
  /**
   * Creates the session, or opens it when it exists; `init` applies to a new one. Takes no lease.
   * @throws SESSION_NO_MODEL, SESSION_BAD_INPUT when the model or the settings cannot be used
   */
  session(name: string, init?: NewSession): Promise<Session>;
  /** Opens a session by its name, an alias, its ULID or the beginning of that; undefined if no session has it. */
  find(ref: Ref): Promise<Session | undefined>;
  /**
   * Returns the session that a delivery is for: the first of `routes` that matches says which key it has. The session of
   * the key, of its aliases or of the sender's address is used; else one is created, with what its persona is. Repeated, it
   * returns the same session.
   * @throws SESSION_NO_ROUTE when no route matches; SESSION_BAD_INPUT; TAPE_ARCHIVED when the session is archived
   */
  route(delivery: IncomingDelivery): Promise<Routed>;
  /** Lists the rows of sessions, newest first; with `parent` or `after`, in order of creation. */
  sessions(query?: SessionQuery): Promise<readonly SessionInfo[]>;
  /**
   * Resolves when this process has no run, background child, merge or title left. Do not await it in a tool: the
   * tool is part of a run, so it would wait for itself.
   */
  idle(): Promise<void>;
  /**
   * Answers a request of the AI SDK's `useChat`, as the handler of `chatHandler` with the options `chat` of the deck does.
   * Without them it serves no session.
   */
  fetch(request: Request): Promise<Response>;
  /**
   * Recovers what a killed process left: continues or aborts its runs, and merges delegated children. A name or
   * ULID, like the option `session`, means that session and everything under it; further options may follow it. Without one,
   * it also recovers the sessions of all personas. As the first act of a deck on a home it also reports the merges that wait
   * in inboxes of processes that are gone; any other use of the deck makes them first.
   */
  recover(session: Ref, options?: Omit<RecoverOptions, 'session'>): Promise<RecoveryReport>;
  recover(options?: Ref | RecoverOptions): Promise<RecoveryReport>;
  /**
   * Stops what runs, merges what stopped children did, and closes the store that the deck opened. Again, it does
   * nothing.
   */
  close(): Promise<void>;
}

/** Options of a deck whose store is open. */
export type OpenOptions = Omit<DeckOptions, 'store'> & { readonly store?: TapeStore };

/**
 * Makes the deck of `openDeck`, and opens what it needs.
 * @param closes whether it closes its store
 */
export async function createDeck(
  options: OpenOptions,
  { closes = options?.store === undefined }: { readonly closes?: boolean } = {},
): Promise<Deck> {
  assertPlace(options);
  const {
    home,
    store: open,
    engine,
    env = process.env,
    base,
    trust,
    modelFrom,
    cwd,
    newId = newIds(Date.now),
    now = Date.now,
    onStrayError,
    chat,
    ...unchecked
  } = options;
  await parseConfig(unchecked, 'the options of a deck');
  const config = withBuiltins(unchecked);
  const secrets = [...secretsOf(config.secrets), ...secretsIn(env), ...secretsOfServers(config.mcpServers)];
  const { redact = true } = config;
  const redactor = redactorFor(redact);
  const file = home === undefined ? undefined : join(home, 'session_graph.jsonl');
  const { store, catchUp: drain }: OpenedHome =
    open === undefined
      ? openHome(home, file, { env, secrets, redact, base, trust: trust ?? true })
      : { store: open, catchUp: () => {} };
  const startedChildren: DeckParts['startedChildren'] = new Map();
  const delegations: DeckParts['delegations'] = new Set();
  /** The children that this process runs for others, by ULID. */
  const taken = new Set<string>();
  const closing = new AbortController();
  /** The titles that models write now. */
  const titling = new Set<Promise<void>>();
  /** Has a title written, beside the runs: nothing waits for it but `idle` and `close`. */
  const giveTitle = (session: { readonly name: string; readonly id: string }) => {
    if (config.titles === undefined || closing.signal.aborted) return;
    const written = titleSession(parts, session.id, closing.signal)
      .catch((error) => {
        if (!closing.signal.aborted)
          workers.of(session).warn(`cannot write a title for '${session.name}': ${messageOf(error)}`);
      })
      .finally(() => titling.delete(written));
    titling.add(written);
  };
  let isOver = false;
  // A recovery reports what waits in inboxes, so they are processed with the first other use of the deck.
  const catchUp = () => {
    if (!isOver) drain();
  };
  // The program can have opened its store with other secrets.
  const masked = open === undefined ? store : maskedStore(store, maskFor(secrets), redactor);
  const patient = patientStore(masked, () => {
    if (isOver)
      throw new SessionError('SESSION_CLOSED', 'cannot use a session or its deck: the deck was closed');
  });
  const own = engine ?? inProcessEngine({ concurrency: limitsOf(config).concurrentChildren });
  const workers = new Workers((session) => {
    const worker = new Worker(parts, session);
    if (isClosed) void worker.close();
    return worker;
  });
  let isClosed = false;
  const active =
    home === undefined
      ? undefined
      : await openActiveWriter(home, {
          store: patient,
          onFailure: (error) => {
            const message = `cannot list active runs in '${home}': ${messageOf(error)}`;
            for (const worker of workers.all()) worker.warn(message);
          },
        });
  const traffic =
    config.record === 'none'
      ? undefined
      : new RawTraffic({
          home,
          secrets,
          redactor,
          newId,
          now,
          onFailure: (session, message) => workers.of(session).warn(message),
        });
  const limits = limitsOf(config);
  const mcp =
    Object.keys(config.mcpServers ?? {}).length === 0
      ? undefined
      : new (await import('../mcp/servers.ts')).Servers(config.mcpServers ?? {}, {
          env,
          cwd,
          now,
          most: limits.concurrentMcpServers,
          startTimeoutMs: limits.mcpStartTimeoutMs,
          messageBytes: limits.mcpResultBytes,
        });
  const parts: DeckParts = {
    store: patient,
    home,
    active,
    mcp,
    now,
    chunks: openChunkWriter(patient),
    worker: ({ session, id }) => workers.of({ name: session, id }),
    session: (info) => new Session(parts, info),
    toolContext: (info, { run, workspace }) =>
      ({
        session: parts.session(info),
        run,
        ...(workspace !== undefined && { workspace }),
        ...directoryFor({ cwd }, workspace),
      }) satisfies ToolContext,
    isDoneAgain: (id) => taken.has(id),
    onServed: async (session, above) => {
      giveTitle(session);
      await deliverUnattended(parts, session, above);
      // Its children may have ended while it ran, and waited.
      if (workers.of(session).status.state === 'waiting') await continueWaiting(parts, session.id);
    },
    child: (info, options) => new Child(parts, info, options),
    calling: callQueues(limitsOf(config).concurrentCalls),
    config,
    engine: own,
    env,
    secrets,
    redactor,
    modelFrom,
    cwd,
    traffic,
    newId,
    startedChildren,
    continued: new Map(),
    forking: new PQueue({ concurrency: 1 }),
    delegations,
    closing: closing.signal,
  };
  await own.work(async (run, signal) => {
    if (own.isElsewhere !== true) {
      await startedChildren.get(run.id)?.run(signal);
      return;
    }
    const { runStarted } = await import('../recovery/run-started.ts');
    const session = run.order?.session ?? run.id;
    taken.add(session);
    try {
      await runStarted(parts, run, signal);
    } finally {
      taken.delete(session);
    }
  });
  let closed: Promise<void> | undefined;
  const end = async () => {
    // What is not done when the engine stops, others go on with: it is no end of theirs.
    if (own.isElsewhere === true) {
      await own.stop({ drain: true });
      const left = workers.all().filter(({ id }) => taken.has(id));
      await Promise.allSettled(left.map(async (worker) => await worker.giveBack()));
    }
    isClosed = true;
    closing.abort(new Error('the deck was closed'));
    await Promise.allSettled([...realms.values()].map(async (other) => await (await other).close()));
    const stopped = workers.all().map((worker) => worker.close());
    if (own.isElsewhere !== true) await own.stop();
    await Promise.all(stopped);
    // What children did whose runs were stopped is merged.
    await Promise.allSettled([...delegations, ...titling]);
    await mcp?.close();
    await traffic?.close();
    await active?.close();
    stopHandling?.();
    // A store that the deck opened is closed, and every act refuses alike. In another one a message can still be left.
    isOver = closes;
    if (closes) await store[Symbol.asyncDispose]();
  };
  const close = () => (closed ??= end());
  const stopHandling =
    onStrayError === undefined ? undefined : handleStrayErrors(parts, { onStrayError, close });
  const graph = await openDeckGraph(parts.store, file);
  const saved = savedSessions(parts);
  /** The decks of the other realms of the store: a session runs among those of its own. */
  const realms = new Map<string, Promise<Deck>>();
  const deckIn = async (realm: string): Promise<Deck> => {
    if (realm === store.base) return deck;
    const known = realms.get(realm);
    if (known !== undefined) return await known;
    // One of a realm routes nothing: it is reached from here. An engine has the work of one deck.
    const {
      base: _,
      trust: _trust,
      routes: _routes,
      personas: _personas,
      engine: _engine,
      onStrayError: onStray,
      ...same
    } = options;
    const opened = createDeck({
      ...same,
      store: store.inRealm(realm),
      // The errors of other code are handled once.
      ...(onStray !== undefined && {
        onStrayError: (stray) => {
          if (stray.session !== undefined) onStray(stray);
        },
      }),
    });
    realms.set(realm, opened);
    return await opened;
  };
  const sessionOf = async (info: SessionInfo): Promise<Session> => {
    const realm = realmOf(info);
    if (realm === store.base) return parts.session(info);
    const found = await (await deckIn(realm)).find(info.id);
    if (found === undefined) throw new TypeError('a session that was found has a row');
    return found;
  };
  const identities = deckIdentities({ store: patient, config, sessionOf });
  let handle: Promise<ChatHandler> | undefined;
  const deck: Deck = {
    fetch: async (request) => {
      catchUp();
      handle ??= import('../chat/chat.ts').then(({ chatHandler }) => chatHandler(deck, chat));
      return await (await handle)(request);
    },
    get store() {
      catchUp();
      return store;
    },
    get graph() {
      catchUp();
      return graph;
    },
    get saved() {
      catchUp();
      return saved;
    },
    get identities() {
      catchUp();
      return identities;
    },
    route: async (delivery) => {
      catchUp();
      return await routeDelivery({ store: patient, config, sessionOf }, delivery);
    },
    session: async (name, { model, settings, instructions, tools, uses, rules, record, ...init } = {}) => {
      catchUp();
      const own = keptSettings(`create '${name}'`, {
        model,
        settings,
        instructions,
        tools,
        uses,
        rules,
        record,
      });
      return await sessionOf(
        await parts.store.sessions.open(name, { ...init, ...(own !== undefined && { settings: own }) }),
      );
    },
    find: async (ref) => {
      catchUp();
      const info = await parts.store.sessions.find(ref);
      return info === undefined ? undefined : await sessionOf(info);
    },
    sessions: async (query) => {
      catchUp();
      return await parts.store.sessions.list(query);
    },
    idle: async () => {
      assertOutsideRun(parts.store, undefined, 'wait for the deck');
      for (;;) {
        await Promise.all(workers.all().map(({ delivered }) => delivered));
        const serving = workers.all().filter(({ isServing }) => isServing);
        const busy = [...delegations, ...titling, ...serving.map((worker) => worker.idle())];
        if (busy.length === 0) break;
        await Promise.allSettled(busy);
      }
      for (const other of realms.values()) await (await other).idle();
    },
    recover: async (given?: Ref | RecoverOptions, more?: Omit<RecoverOptions, 'session'>) => {
      const { joinedReport, recover, recoverOptions } = await import('../recovery/recover.ts');
      const options = recoverOptions(given, more);
      const named = options?.session === undefined ? undefined : await patient.sessions.find(options.session);
      const elsewhere = named === undefined ? undefined : realmOf(named);
      if (elsewhere !== undefined && elsewhere !== store.base)
        return await (await deckIn(elsewhere)).recover(options);
      const report = await recover(parts, options);
      const others: RecoveryReport[] = [];
      if (options.session === undefined)
        for (const persona of Object.keys(config.personas ?? {}))
          if (persona !== store.base) others.push(await (await deckIn(persona)).recover(options));
      if (options.dryRun !== true) catchUp();
      return joinedReport(report, others);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
  return deck;
}

/** The realm of a session: what its tape name begins with. */
function realmOf({ tape }: SessionInfo): string {
  return tape.slice(0, tape.indexOf(':'));
}
