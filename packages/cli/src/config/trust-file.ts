import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isObject } from '@tapedeck/tape';
import { ConfigError } from '../errors/kinds.ts';
import type { Io } from '../io.ts';

/** A directory whose configuration may be run, as long as that is these bytes. */
export interface Grant {
  /** The directory's real path. */
  readonly dir: string;
  /** The name of the file in it. */
  readonly config: string;
  readonly sha256: string;
}

/** Where trust is recorded: `$XDG_CONFIG_HOME/tape/trust.json`, else `~/.config/tape/trust.json`. Never in a project. */
export function trustFile({ env }: Pick<Io, 'env'>): string {
  const given = env.XDG_CONFIG_HOME ?? '';
  const user = env.HOME === undefined || env.HOME === '' ? homedir() : env.HOME;
  return join(isAbsolute(given) ? given : join(user, '.config'), 'tape', 'trust.json');
}

/**
 * The grants that are recorded, in the order in which they were given.
 * @throws ConfigError when the file cannot be read, or is one that others can write
 */
export function readGrants(file: string): readonly Grant[] {
  const refuse = (why: string, mode?: string): ConfigError =>
    new ConfigError('CLI_BAD_CONFIG', `cannot tell what is trusted by '${file}': ${why}`, {
      data: { config: file, ...(mode !== undefined && { mode }) },
    });
  try {
    const { mode, uid } = statSync(file);
    const own = process.getuid?.() ?? uid;
    if (uid !== own && uid !== 0) throw refuse('it belongs to another user');
    if ((mode & 0o022) !== 0) throw refuse('others can write it', (mode & 0o777).toString(8));
    const record: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (isObject(record) && record.v === 1 && Array.isArray(record.trusted) && record.trusted.every(isGrant))
      return record.trusted;
    throw refuse('it is not what tape trust writes');
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return [];
    throw refuse(message);
  }
}

function isGrant(value: unknown): value is Grant {
  return (
    isObject(value) && [value.dir, value.config, value.sha256].every((field) => typeof field === 'string')
  );
}

/**
 * Replaces the grants by what `change` makes of them, at once and on disk when it resolves; `undefined` leaves them as
 * they are. Nobody else can change them in between: the draft of the new file is the lock.
 * @throws ConfigError
 */
export async function changeGrants(
  file: string,
  change: (grants: readonly Grant[]) => readonly Grant[] | undefined,
): Promise<void> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.lock`;
  const fd = await lock(draft);
  let done = false;
  try {
    const trusted = change(readGrants(file));
    if (trusted !== undefined) {
      writeSync(fd, `${JSON.stringify({ v: 1, trusted }, undefined, 2)}\n`);
      fsyncSync(fd);
      renameSync(draft, file);
      done = true;
      syncDirectory(dirname(file));
    }
  } finally {
    closeSync(fd);
    if (!done) rmSync(draft, { force: true });
  }
}

const pollMs = 10;

/** What holds the lock needs milliseconds: one that is older was left behind by a process that was killed. */
const leftBehindMs = 10_000;

async function lock(path: string): Promise<number> {
  const from = performance.now();
  for (;;) {
    try {
      return openSync(path, 'wx', 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const since = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - since > leftBehindMs || performance.now() - from > leftBehindMs)
      throw new ConfigError(
        'CLI_BAD_CONFIG',
        `cannot record trust: '${path}' is there, of another tape trust`,
        {
          data: { lock: path },
        },
      );
    await sleep(pollMs);
  }
}

function syncDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
