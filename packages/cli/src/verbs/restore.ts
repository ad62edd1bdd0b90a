import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { openTapeStore, type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import { NotFoundError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { doesExist, type Home, homeAt, openForWriting } from '../home.ts';
import type { Io } from '../io.ts';
import { checkJson, checkText } from '../session/checked.ts';
import { defineVerb, type Verb } from './verb.ts';

export const restore: Verb = defineVerb({
  command: 'restore <file> [dir]',
  group: 'Trust',
  summary: 'Make a new home of a backup, and check it',
  detail:
    'Copies the backup to DIR/tape.db, or to the home of --home, else to .tape in the working directory; verifies the copy before ' +
    'it gets its name, writes the graph file, and prints what tape check finds. Refuses a directory that has tapes. A graph file that is there and differs is set aside.',
  examples: [['tape restore ~/tapes-friday.db restored', 'Make the home ./restored']],
  options: (y) =>
    y
      .positional('file', { type: 'string', demandOption: true, describe: 'Backup' })
      .positional('dir', { type: 'string', describe: 'New home' }),
  run: async ({ file, dir, home }, { io, answer }) => {
    const from = resolve(io.cwd, file);
    if (!existsSync(from)) throw new NotFoundError(`cannot restore '${from}': no such file`, { file: from });
    const named = home ?? (io.env.TAPE_HOME === '' ? undefined : io.env.TAPE_HOME);
    const at = homeAt(dir ?? named ?? join(io.cwd, '.tape'), io.cwd);
    if (doesExist(at.db)) throw new TapeError('TAPE_EXISTS', `cannot restore to '${at.dir}': it has tapes`);
    if (statSync(at.dir, { throwIfNoEntry: false })?.isFile() === true)
      throw new TapeError('TAPE_EXISTS', `cannot restore to '${at.dir}': it is a file, not a directory`);
    await copy(from, at);
    const { check } = await import('@tapedeck/runtime');
    using store = openRestored(at, io);
    const found = await check(store, { graph: at.graph });
    await answer({
      json: { home: at.dir, ...checkJson(found) },
      quiet: at.dir,
      human: `Restored ${from} to ${at.dir}\n${checkText(found)}`,
    });
    return found.damaged ? exit.damaged : found.ok ? exit.done : exit.failed;
  },
});

/** Opens the restored tapes. When that is refused, as beside the graph file of other tapes, nothing of them is left. */
function openRestored(at: Home, io: Io): SqliteTapeStore {
  try {
    return openForWriting(at, io);
  } catch (error) {
    for (const suffix of ['', '-wal', '-shm']) rmSync(at.db + suffix, { force: true });
    throw error;
  }
}

/**
 * Copies a backup, whole or not at all. One of an older schema is copied as it is: opening it for writing upgrades it.
 * @throws TAPE_NOT_A_TAPE, TAPE_SCHEMA_NEWER, TAPE_CORRUPT when the copy does not verify
 */
async function copy(from: string, { dir, db }: { readonly dir: string; readonly db: string }): Promise<void> {
  const made = makeDirectory(dir);
  try {
    using store = openTapeStore(from, { readonly: true });
    await store.backup(db);
  } catch (error) {
    if (error instanceof TapeError && error.code === 'TAPE_SCHEMA_OLDER') {
      const draft = `${db}.${randomBytes(6).toString('hex')}.part`;
      copyFileSync(from, draft);
      chmodSync(draft, 0o600);
      renameSync(draft, db);
      return;
    }
    if (made !== undefined) rmdirSync(dir);
    if (!(error instanceof TapeError)) throw error;
    throw new TapeError(error.code, `cannot restore '${from}': ${error.message}`, {
      data: { ...error.data, backup: from },
      cause: error,
    });
  }
}

/** Makes a directory, and returns the first one that it made. */
function makeDirectory(dir: string): string | undefined {
  try {
    return mkdirSync(dir, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new TapeError(
      'TAPE_CANNOT_OPEN',
      `cannot make the directory '${dir}': ${(cause as Error).message}`,
      {
        cause,
      },
    );
  }
}
