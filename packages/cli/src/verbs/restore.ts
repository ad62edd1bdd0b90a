import { existsSync, readdirSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { type HomeStore, openTapeStore, TapeError } from '@tapedeck/tape';
import { copyOlder, makeDirectories } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { systemFault } from '../errors/system-fault.ts';
import { shellWord } from '../escape.ts';
import { exit } from '../exit.ts';
import { doesExist, type FileHome } from '../file-home.ts';
import { directoryHome, openForWriting } from '../home.ts';
import { withProgress } from '../output/progress.ts';
import { isAddress } from '../server-home.ts';
import { checkJson, checkText } from '../session/checked.ts';
import { defineVerb, type Verb } from './verb.ts';

export const restore: Verb = defineVerb({
  command: 'restore <file> [dir]',
  group: 'Share',
  summary: 'Make a new home of a backup, and check it',
  detail:
    'Copies the backup to DIR/tape.db, or to the home of --home, else to .tape in the working directory; verifies the copy before ' +
    'it gets its name, writes the graph file, and prints what tape check finds. Refuses a directory that has tapes. A graph file that is there and differs is set aside.',
  examples: [['tape restore ~/tapes-friday.db restored', 'Make the home ./restored']],
  arguments: { file: 'Backup', dir: 'New home' },
  run: async ({ file, dir, home }, context) => {
    const { io, answer } = context;
    const from = resolve(io.cwd, file);
    if (!existsSync(from)) throw new NotFoundError(`cannot restore '${from}': no such file`, { file: from });
    const named = home ?? (io.env.TAPE_HOME === '' ? undefined : io.env.TAPE_HOME);
    const to = dir ?? named ?? join(io.cwd, '.tape');
    if (isAddress(to))
      throw new UsageError('cannot restore to a server: a backup is a file', {
        hint: 'restore it to a directory, and copy that: tape copy DIR ADDRESS',
      });
    const at = directoryHome(to, io.cwd);
    if (doesExist(at.db))
      throw new TapeError('TAPE_EXISTS', `cannot restore to '${at.dir}': it has tapes`, {
        data: { home: at.dir },
      });
    if (statSync(at.dir, { throwIfNoEntry: false })?.isFile() === true)
      throw new TapeError('TAPE_EXISTS', `cannot restore to '${at.dir}': it is a file, not a directory`);
    const { check } = await import('@tapedeck/runtime');
    const of = { ...context, home: at };
    using store = await restoreTo(from, of);
    const found = await withProgress(of, (progress) => {
      const parts = { entries: progress('Verifying entries'), sessions: progress('Examining sessions') };
      return check(store, { graph: at.graph, onProgress: ({ of: part, ...now }) => parts[part](now) });
    });
    await answer({
      json: { home: at.dir, ...checkJson(found, { home: dir ?? home }) },
      quiet: at.dir,
      human: `Restored ${from} to ${at.dir} (${useOf(at.dir)})\n${checkText(found, { home: dir ?? home })}`,
    });
    return found.damaged ? exit.damaged : found.ok ? exit.done : exit.failed;
  },
});

/** How to use a restored home: only a directory `.tape` is found without its name, once it is trusted. */
function useOf(dir: string): string {
  return basename(dir) === '.tape'
    ? `trust it, for use without --home, with: tape trust ${shellWord(dir)}`
    : `use it with: --home ${shellWord(dir)}`;
}

type Restoring = Pick<Context, 'io' | 'options'> & { readonly home: FileHome };

/** Makes the home. When that is refused, as beside the graph file of other tapes, nothing of it is left. */
async function restoreTo(from: string, context: Restoring): Promise<HomeStore> {
  const { home: at, io } = context;
  const made = makeDirectory(at.dir);
  // A directory that was made has no files.
  const there = made === undefined ? namesIn(at.dir) : [];
  let isCopied = false;
  try {
    await copy(from, context);
    isCopied = true;
    return await openForWriting(at, io);
  } catch (error) {
    try {
      // Tapes that another process restored meanwhile have refused the copy, and stay.
      if (isCopied) removeNew(at, there);
      if (made !== undefined) removeEmpty(at.dir, made);
    } catch {
      // What cannot be removed stays; the error says why there is no home.
    }
    throw error;
  }
}

/** Removes the database, with its log and its copy from before an upgrade, and the graph file, if it is new. */
function removeNew({ dir }: FileHome, there: readonly string[]): void {
  for (const name of readdirSync(dir))
    if (!there.includes(name) && /^(?:tape\.db.*|session_graph\.jsonl)$/.test(name)) rmSync(join(dir, name));
}

/** Removes an empty directory, and those above it up to the first one that was made. */
function removeEmpty(dir: string, made: string): void {
  for (let at = dir; ; at = dirname(at)) {
    rmdirSync(at);
    if (at === resolve(made)) return;
  }
}

/**
 * Copies a backup, whole or not at all. One of an older schema is copied as it is: opening it for writing upgrades it.
 * @throws TAPE_NOT_A_TAPE, TAPE_SCHEMA_NEWER, TAPE_CORRUPT when the copy does not verify
 */
async function copy(from: string, context: Restoring): Promise<void> {
  const { db } = context.home;
  try {
    using store = openTapeStore(from, { readonly: true });
    await withProgress(context, (progress) => {
      const parts = { pages: progress('Copying pages'), entries: progress('Verifying entries') };
      return store.backup(db, { onProgress: ({ of, ...now }) => parts[of](now) });
    });
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
    if (error.code === 'TAPE_SCHEMA_OLDER') return await copyOlder(from, db);
    throw new TapeError(error.code, `cannot restore '${from}': ${error.message}`, {
      data: { ...error.data, backup: from },
      cause: error,
    });
  }
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (cause) {
    throw new TapeError('TAPE_CANNOT_OPEN', `cannot restore to '${dir}': ${systemFault(cause)}`, {
      cause,
    });
  }
}

/** Makes a directory, and returns the first one that it made. */
function makeDirectory(dir: string): string | undefined {
  try {
    return makeDirectories(dir, 0o700);
  } catch (cause) {
    throw new TapeError('TAPE_CANNOT_OPEN', `cannot make the directory '${dir}': ${systemFault(cause)}`, {
      cause,
    });
  }
}
