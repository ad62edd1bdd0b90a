import { join } from 'node:path';
import { openJournal } from '@tapedeck/graph/journal';
import {
  openTapeStore,
  type Ref,
  type SessionInfo,
  type SessionInit,
  type SessionQuery,
  type TapeStore,
} from '@tapedeck/tape';
import { ulid } from 'ulid';
import { type DeckGraph, openDeckGraph } from './deck-graph.ts';
import type { RunEnd } from './delegate.ts';
import type { RunEngine, RunSpec } from './engine.ts';
import type { ToolSet } from './model.ts';
import type { ModelSpec } from './model-spec.ts';
import { patientStore } from './patient-store.ts';
import type { RecoverOptions, RecoveryReport } from './recover.ts';
import { Session } from './session.ts';
import type { CostOf } from './usage.ts';

/** What the sessions of a deck run with. */
export interface DeckConfig {
  readonly model?: ModelSpec;
  readonly tools?: ToolSet;
  readonly instructions?: string;
  /** What a model call cost: recorded with its answer. Without it no cost is. */
  readonly cost?: CostOf;
}

export interface DeckOptions extends DeckConfig {
  /** The tape home: a directory with `tape.db` and `session_graph.jsonl`. */
  readonly home?: string;
  /** Instead of a home: a store of your own. */
  readonly store?: TapeStore;
  /** Who runs children; by default this process. */
  readonly engine?: RunEngine;
  /** Where keys and base URLs of named models are looked up, `process.env` say. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly newId?: () => string;
}

/** A child that was started here. */
interface Job {
  readonly run: (signal: AbortSignal) => Promise<void>;
  readonly end: Promise<RunEnd>;
}

/** What the sessions of one deck share. */
export interface DeckParts {
  readonly store: TapeStore;
  readonly config: DeckConfig;
  readonly engine: RunEngine | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly newId: () => string;
  /** What running each started child means here, by its name, until it has ended. */
  readonly jobs: Map<string, Job>;
  /** Runs a child that an engine hands out. */
  readonly work: (run: RunSpec, signal: AbortSignal) => Promise<void>;
}

/** A home that is open for running sessions. */
export interface Deck extends AsyncDisposable {
  readonly store: TapeStore;
  readonly graph: DeckGraph;
  /** Creates or resumes. Holds no lease. */
  session(name: string, init?: SessionInit): Promise<Session>;
  find(ref: Ref): Promise<Session | undefined>;
  sessions(query?: SessionQuery): Promise<readonly SessionInfo[]>;
  /** Takes care of delegated children whose process was killed: see `recover`. */
  recover(options?: RecoverOptions): Promise<RecoveryReport>;
}

/**
 * Opens a tape home, or wraps a store, for running sessions.
 * @throws what `openTapeStore` throws
 */
export async function openDeck(options: DeckOptions): Promise<Deck> {
  const { home, model, tools, instructions, cost, engine, env = {}, newId = ulid } = options;
  const file = home === undefined ? undefined : join(home, 'session_graph.jsonl');
  const store = options.store ?? openHome(home, file);
  const jobs: DeckParts['jobs'] = new Map();
  const parts: DeckParts = {
    store: patientStore(store),
    config: {
      ...(model !== undefined && { model }),
      ...(tools !== undefined && { tools }),
      ...(instructions !== undefined && { instructions }),
      ...(cost !== undefined && { cost }),
    },
    engine,
    env,
    newId,
    jobs,
    work: async ({ id }, signal) => {
      await jobs.get(id)?.run(signal);
    },
  };
  await engine?.work(parts.work);
  return {
    store,
    graph: openDeckGraph(parts.store, file),
    session: async (name, init) => new Session(parts, await parts.store.session(name, init)),
    find: async (ref) => {
      const info = await parts.store.find(ref);
      return info === undefined ? undefined : new Session(parts, info);
    },
    sessions: async (query) => await parts.store.sessions(query),
    recover: async (o) => await (await import('./recover.ts')).recover(parts, o),
    [Symbol.asyncDispose]: async () => {
      await engine?.stop();
      if (options.store === undefined) await store[Symbol.asyncDispose]();
    },
  };
}

function openHome(home: string | undefined, file: string | undefined): TapeStore {
  if (home === undefined || file === undefined) throw new TypeError('a deck needs a home or a store');
  return openTapeStore(join(home, 'tape.db'), { journal: openJournal(file), lockWaitMs: 0 });
}
