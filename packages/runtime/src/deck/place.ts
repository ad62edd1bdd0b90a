import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openJournal } from '@tapedeck/graph/journal';
import {
  type Elsewhere,
  type HomeStore,
  openTapeStore,
  type Redact,
  type Secret,
  type TapeStore,
} from '@tapedeck/tape';
import { claimHome, homeRecord, recordHome, recordLog, stateDirectory } from '@tapedeck/tape/internal';
import { kindFault } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';

/** Options of a deck that are no configuration, by the kind of their values. */
const kinds = {
  env: 'object',
  base: 'text',
  modelFrom: 'text',
  cwd: 'text',
  engine: 'object',
  newId: 'function',
  now: 'function',
  onStrayError: 'function',
  chat: 'object',
} as const;

/** Where the tapes of a deck are. */
interface Place {
  readonly home?: string;
  readonly store?: TapeStore;
  readonly env?: Env;
  readonly trust?: boolean | Elsewhere;
}

/**
 * Refuses options that say neither where the tapes are nor which store has them.
 * @throws SESSION_BAD_CONFIG
 */
export function assertPlace(options: Place): void {
  if (typeof options !== 'object' || options === null) throw badPlace('', 'they must be an object');
  const { home, store, trust } = options;
  if (home === undefined ? store === undefined : typeof home !== 'string' || home === '')
    throw badPlace('home', 'must be the path of a directory, or store an open store');
  if (store !== undefined && typeof store?.sessions?.open !== 'function')
    throw badPlace('store', 'must be an open store');
  if (trust !== undefined && store !== undefined)
    throw badPlace('trust', 'is an option of openTapeStore, for a deck with a store');
  for (const [field, kind] of Object.entries(kinds)) {
    const value: unknown = Reflect.get(options, field);
    const words = value === undefined ? undefined : kindFault(value, kind);
    if (words !== undefined) throw badPlace(field, `must be ${words}`);
  }
}

function badPlace(field: string, why: string): SessionError {
  const what = field === '' ? why : `${field} ${why}`;
  return new SessionError('SESSION_BAD_CONFIG', `cannot use the options of a deck: ${what}`, {
    data: { field, why },
  });
}

/** The store of a home, whose inboxes without an owner are not processed yet. */
export interface OpenedHome {
  readonly store: TapeStore;
  /** Processes them. Again, it does nothing. */
  readonly catchUp: () => void;
}

/** Opens the store of a home, and its graph file. */
export function openHome(
  home: string | undefined,
  file: string | undefined,
  {
    env,
    secrets,
    redact,
    base,
    trust,
  }: {
    readonly env: Env;
    readonly secrets: readonly Secret[];
    readonly redact: Redact;
    readonly base?: string | undefined;
    readonly trust: boolean | Elsewhere;
  },
): OpenedHome {
  if (home === undefined || file === undefined)
    throw badPlace('home', 'must be a directory, without a store');
  const db = join(home, 'tape.db');
  const isNew = !existsSync(db);
  const isKnown = homeRecord(stateDirectory(env), home) !== undefined;
  // Until it is recorded, `tape` waits.
  using _claim = isNew && isRecorded(env) ? claimHome(stateDirectory(env), home) : undefined;
  const store = openTapeStore(db, {
    trust,
    journal: openJournal(file),
    secrets,
    redact,
    keepInboxes: true,
    ...(base !== undefined && { base }),
  });
  if (isNew) remember(home, store, env);
  else if (isKnown) rememberLog(home, env);
  let isDone = false;
  return {
    store,
    catchUp: () => {
      if (isDone) return;
      store.catchUp();
      isDone = true;
    },
  };
}

type Env = Readonly<Record<string, string | undefined>>;

/** Whether the homes are recorded that a program creates: without a home directory in the environment they are not. */
function isRecorded(env: Env): boolean {
  return (env.HOME ?? env.XDG_CONFIG_HOME) !== undefined && env.TAPE_TRUST_HOME !== '1';
}

/** Records that a program of this user created a home, so that `tape` may write it. */
function remember(home: string, { homeId, elsewhere }: HomeStore, env: Env): void {
  // Another process may have created it meanwhile, and recorded that.
  if (!isRecorded(env) || homeRecord(stateDirectory(env), home) !== undefined) return;
  try {
    const at = new Date().toISOString();
    recordHome(stateDirectory(env), home, { home: homeId, elsewhere, consent: 'created', at, config: null });
  } catch {
    // The state directory cannot be written: `tape trust` allows the home later.
  }
}

/** Records that the log of a home is of this program: a crash leaves it. */
function rememberLog(home: string, env: Env): void {
  try {
    recordLog(stateDirectory(env), home);
  } catch {
    // As above.
  }
}
