import { lstatSync, type Stats, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Problem } from '@tapedeck/runtime/import';
import { isBundle } from '@tapedeck/tape/internal';
import { NotFoundError } from '../errors/kinds.ts';
import { commandLine } from '../escape.ts';
import type { Io } from '../io.ts';
import { headOf } from './bundle.ts';

/** A path that the user named, and what is there. */
interface NamedPath {
  readonly path: string;
  readonly stat: Stats;
}

/**
 * Finds what the user named to be imported.
 * @throws NotFoundError for what is not there; IMPORT_CANNOT_READ for what may not be looked at
 */
export async function namedPath(named: string, { cwd }: Pick<Io, 'cwd'>): Promise<NamedPath> {
  const path = resolve(cwd, named);
  try {
    return { path, stat: statSync(path) };
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const isNowhere = code === 'ENOENT' || code === 'ENOTDIR';
    if (!isNowhere) {
      const { cannotRead, reasonOf } = await import('@tapedeck/runtime/internal');
      throw cannotRead(path, reasonOf(cause), cause);
    }
    const why =
      code === 'ENOENT' && isLink(path) ? 'it is a link to what is not there' : 'no such file or directory';
    throw new NotFoundError(`cannot import '${named}': ${why}`, { file: named, why });
  }
}

/** What of some named paths is there to be searched, and what is wrong with the others. */
interface NamedPaths {
  readonly paths: readonly string[];
  /** Those that are no transcripts, which the verb imports without a search. */
  readonly bundles: readonly Problem[];
  readonly missing: readonly Problem[];
}

/**
 * Finds what the user named to be searched. What is not there keeps nothing else from it.
 * @throws NotFoundError or IMPORT_CANNOT_READ for the first path where none is there
 */
export async function namedPaths(named: readonly string[], { cwd }: Pick<Io, 'cwd'>): Promise<NamedPaths> {
  const paths: string[] = [];
  const bundles: Problem[] = [];
  const missing: Problem[] = [];
  let first: unknown;
  for (const one of named)
    try {
      const { path, stat } = await namedPath(one, { cwd });
      if (stat.isFile() && (await isBundleAt(path))) bundles.push({ path, why: whyBundle(one) });
      else paths.push(path);
    } catch (error) {
      first ??= error;
      const { data = {} } = error as { readonly data?: { readonly why?: unknown } };
      missing.push({ path: resolve(cwd, one), why: String(data.why) });
    }
  if (paths.length + bundles.length === 0 && first !== undefined) throw first;
  return { paths, bundles, missing };
}

/** Why a search leaves out a bundle, and how to import it. */
export function whyBundle(named: string): string {
  return `a bundle; import it with: ${commandLine('import', [named])}`;
}

/** Whether a file is a bundle, as far as this user may look. */
async function isBundleAt(path: string): Promise<boolean> {
  try {
    return await isBundle(await headOf(path));
  } catch {
    return false;
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}
