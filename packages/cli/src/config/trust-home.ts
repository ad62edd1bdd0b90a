import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { type HomeStore, TapeError } from '@tapedeck/tape';
import {
  configIn,
  forgetHome,
  type HomeRecord,
  homeRecord,
  homeRecords,
  placeFaults,
  recordHome,
  stateDirectory,
} from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { ConfigError, UsageError } from '../errors/kinds.ts';
import { shellWord } from '../escape.ts';
import { exit } from '../exit.ts';
import { directoryHome, type Home } from '../home.ts';
import { counted } from '../output/counted.ts';

/** Whether a directory is a tape home, and not one with a configuration. */
export function isHome(dir: string): boolean {
  return existsSync(join(dir, 'tape.db'));
}

/** How many lines of one kind are printed. */
const linesMax = 20;
/** How many characters of instructions are printed. */
const textMax = 120;

/** Shows what a home brings in; then, unless it is a dry run, records that the user trusts it. */
export async function trustHome(
  dir: string,
  { isDryRun }: { readonly isDryRun: boolean },
  { io, answer }: Pick<Context, 'io' | 'answer'>,
): Promise<number> {
  const at = directoryHome(dir, io.cwd);
  const path = realpathSync(dir);
  const { openTapeStore } = await import('@tapedeck/tape');
  // A private copy, so that looking at it writes nothing; as this user's own, so that all of it is shown.
  using store = opened(() => openTapeStore(at.db, { readonly: true, inPlace: false }), dir);
  const { broughtBy } = await import('@tapedeck/runtime/internal');
  const brings = await broughtBy(store);
  const faults = placeFaults(dir);
  const config = existsSync(join(path, 'config.yaml')) ? join(path, 'config.yaml') : null;
  const known = homeRecord(stateDirectory(io.env), path);
  const before = known?.home === store.homeId ? known : undefined;
  const isKnown = before !== undefined && before.consent !== 'named';
  const edited = isKnown ? editedIn(path, before) : undefined;
  const repeated = isKnown && edited === undefined;
  if (!isDryRun && !repeated) record(path, { store, before, edited, env: io.env });
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['model', brings.models.map(({ name, sessions }) => `${name} (${counted(sessions, 'session')})`)],
    ['instructions', brings.instructions.map(({ session, text }) => `${session}: ${clipped(text)}`)],
    [
      'open call',
      brings.calls.map(
        ({ session, toolCallId, tool, approved }) =>
          `${session}: ${toolCallId} of ${tool}${approved ? ', approved' : ''}`,
      ),
    ],
    [
      'inbox',
      brings.inbox.map(
        ({ session, items, approvals }) =>
          `${session}: ${counted(items, 'item')}${approvals === 0 ? '' : `, ${counted(approvals, 'approval')}`}`,
      ),
    ],
    ['worktree', brings.worktrees.map(({ session, text }) => `${session}: of ${text}`)],
    ['configuration', config === null ? [] : [config]],
    ['MCP server', config === null ? [] : await serversIn(at)],
    ['place', faults],
  ];
  const unread = brings.sessions - brings.read;
  const lines = [
    `${path} has ${counted(brings.sessions, 'session')}${unread === 0 ? '' : `; read the newest ${brings.read}`}`,
    ...rows.flatMap(([kind, texts]) => [
      ...texts.slice(0, linesMax).map((text) => `  ${kind}: ${text.replace(/\s+/g, ' ')}`),
      ...(texts.length > linesMax ? [`  ${kind}: and ${texts.length - linesMax} more`] : []),
    ]),
    'Scripts as models, approvals, repeats of calls, worktrees, and paths, MCP servers, routes, personas and aliases in config.yaml count only when they are made here.',
    repeated
      ? `${path} is trusted already: nothing to do`
      : isDryRun
        ? `Trust it with: tape trust ${shellWord(dir)}`
        : `Trusted ${edited === undefined ? path : `${config} as it is now`} (undo with: tape trust ${shellWord(dir)} --revoke)`,
  ];
  const clip = <T>(list: readonly T[]) => list.slice(0, linesMax);
  await answer({
    json: {
      home: path,
      id: store.homeId,
      trusted: repeated || !isDryRun,
      repeated,
      sessions: brings.sessions,
      brings: {
        models: clip(brings.models),
        instructions: clip(brings.instructions),
        calls: clip(brings.calls),
        inbox: clip(brings.inbox),
        worktrees: clip(brings.worktrees),
        config,
      },
      faults,
    },
    quiet: path,
    human: lines.join('\n'),
  });
  return exit.done;
}

/** What the `config.yaml` of a home would start, and send to. */
async function serversIn(home: Home): Promise<readonly string[]> {
  const { readHomeConfig } = await import('./home.ts');
  try {
    const { mcpServers = {} } = (await readHomeConfig(home)).config;
    return Object.entries(mcpServers).map(
      ([name, server]) =>
        `${name}: ${'url' in server ? server.url : [server.command, ...(server.args ?? [])].map(shellWord).join(' ')}`,
    );
  } catch (error) {
    // It cannot start anything either.
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

/** Opens a home; one of an older version can be upgraded only when it is named. */
function opened(open: () => HomeStore, dir: string): HomeStore {
  try {
    return open();
  } catch (cause) {
    if (!(cause instanceof TapeError) || cause.code !== 'TAPE_SCHEMA_OLDER') throw cause;
    throw new UsageError(`cannot trust '${dir}': an older version made it`, {
      data: { dir, ...cause.data },
      hint: `migrate it, and keep a copy of the old file, with: tape raw checkpoint --home ${shellWord(dir)}`,
    });
  }
}

/**
 * The digest of a `config.yaml` that the user changes after the first trust, and trusts now; undefined for one that is
 * as it was.
 */
function editedIn(path: string, before: HomeRecord): string | undefined {
  const config = configIn(path);
  const isNew = config !== null && config !== before.config && config !== before.edited;
  return isNew && before.consent === 'trusted' ? config : undefined;
}

/** @throws ConfigError when the state directory cannot be written */
function record(
  path: string,
  {
    store,
    before,
    edited,
    env,
  }: {
    readonly store: HomeStore;
    readonly before: HomeRecord | undefined;
    readonly edited: string | undefined;
    readonly env: Context['io']['env'];
  },
): void {
  const state = stateDirectory(env);
  try {
    recordHome(state, path, {
      home: store.homeId,
      consent: 'trusted',
      at: new Date().toISOString(),
      // What was made here since the home was named counts.
      elsewhere: before?.elsewhere ?? store.newest(),
      config: before === undefined ? configIn(path) : before.config,
      ...(edited !== undefined && { edited }),
    });
  } catch (cause) {
    throw new ConfigError(
      'CLI_BAD_CONFIG',
      `cannot record trust in '${state}': ${(cause as Error).message}`,
      {
        data: { config: state },
        cause,
      },
    );
  }
}

function clipped(text: string): string {
  return text.length > textMax ? `${text.slice(0, textMax)}…` : text;
}

/** Removes what is recorded of a home; whether there was a record. */
export async function untrustHome(
  dir: string,
  { io, answer }: Pick<Context, 'io' | 'answer'>,
): Promise<number> {
  const was = forgetHome(stateDirectory(io.env), dir);
  const path = existsSync(dir) ? realpathSync(dir) : dir;
  await answer({
    json: { dir: path, config: null, sha256: null, imports: null, trusted: false, repeated: !was },
    quiet: path,
    human: was
      ? `Revoked trust in ${path} (trust it again with: tape trust ${shellWord(dir)})`
      : `${path} is not trusted: nothing to do`,
  });
  return exit.done;
}

/** A home that the user trusted. */
interface TrustedHome {
  /** Its real path. */
  readonly dir: string;
  readonly config: null;
  readonly sha256: null;
  readonly imports: readonly [];
  /** `gone`: it was moved, removed or replaced since. */
  readonly state: 'trusted' | 'gone';
}

/** The homes that the user trusted; those that were created or named need no list. */
export function trustedHomes(env: Context['io']['env']): readonly TrustedHome[] {
  const state = stateDirectory(env);
  return homeRecords(state)
    .filter(({ consent }) => consent === 'trusted')
    .map(({ path }) => ({
      dir: path,
      config: null,
      sha256: null,
      imports: [],
      state: homeRecord(state, path) === undefined ? 'gone' : 'trusted',
    }));
}
