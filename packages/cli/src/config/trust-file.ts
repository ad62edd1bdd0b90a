import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isObject, stateDirectory } from '@tapedeck/tape/internal';
import { ConfigError } from '../errors/kinds.ts';
import type { Io } from '../io.ts';
import type { ImportedFile } from './imports.ts';
import { replaceFile } from './replace-file.ts';

/** A directory whose configuration may run, as long as its hash matches. */
export interface Grant {
  /** The directory's real path. */
  readonly dir: string;
  /** The name of the file in it. */
  readonly config: string;
  readonly sha256: string;
  /** The local files that it imports. */
  readonly imports: readonly ImportedFile[];
}

/** Path of the record of trust, in the user's state directory. Never in a project. */
export function trustFile({ env }: Pick<Io, 'env'>): string {
  return join(stateDirectory(env), 'trust.json');
}

/**
 * The recorded grants, oldest first.
 * @throws ConfigError when the file cannot be read, or other users can write it
 */
export function readGrants(file: string): readonly Grant[] {
  const refuse = (why: string, mode?: string): ConfigError =>
    new ConfigError('CLI_BAD_CONFIG', `cannot read the record of trust '${file}': ${why}`, {
      data: { config: file, ...(mode !== undefined && { mode }) },
    });
  try {
    const { mode, uid } = statSync(file);
    const own = process.getuid?.() ?? uid;
    if (uid !== own && uid !== 0) throw refuse('it belongs to another user');
    if ((mode & 0o022) !== 0) throw refuse('other users can write it', (mode & 0o777).toString(8));
    const record: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (isObject(record) && record.v === 1 && Array.isArray(record.trusted) && record.trusted.every(isGrant))
      // A grant of an earlier version covers no imports.
      return record.trusted.map((grant) => ({ ...grant, imports: grant.imports ?? [] }));
    throw refuse('tape trust did not write it');
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return [];
    throw refuse(message);
  }
}

function isGrant(value: unknown): value is Omit<Grant, 'imports'> & Partial<Pick<Grant, 'imports'>> {
  return (
    isObject(value) &&
    [value.dir, value.config, value.sha256].every((field) => typeof field === 'string') &&
    (value.imports === undefined || Array.isArray(value.imports))
  );
}

/**
 * Replaces the grants with the result of `change`, atomically, and resolves once they are on disk;
 * `undefined` changes nothing.
 * @throws ConfigError
 */
export async function changeGrants(
  file: string,
  change: (grants: readonly Grant[]) => readonly Grant[] | undefined,
): Promise<void> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  await replaceFile(file, 'record trust', () => {
    const trusted = change(readGrants(file));
    return trusted && `${JSON.stringify({ v: 1, trusted }, undefined, 2)}\n`;
  });
}
