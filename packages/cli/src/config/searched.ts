import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Context } from '../context.ts';
import { shellWord } from '../escape.ts';
import { isConfigForeign } from '../origin.ts';
import { homeConfigFile } from './find.ts';

/** Where a home looks for transcripts, beside the folders of their tools, and what it leaves out. */
export interface Searched {
  readonly roots: readonly string[];
  /** In the patterns of `.gitignore`. */
  readonly exclude: readonly string[];
}

/**
 * What `config.yaml` of a home says about imports. Reads it as strictly as `tape config` does: a mistake in it must not bring
 * in what the user meant to leave out. The folders of a file that came with the home do not count, since the user did not name
 * them; what such a file leaves out is left out.
 * @throws ConfigError for a file with a mistake, whatever it is about
 */
export async function readSearched({
  home,
  io,
  status,
}: Pick<Context, 'home' | 'io' | 'status'>): Promise<Searched> {
  const file = homeConfigFile(home);
  if (!existsSync(file)) return { roots: [], exclude: [] };
  const { readHomeConfig } = await import('./home.ts');
  const { data } = await readHomeConfig(home);
  const { exclude = [], roots: named = [] } = (data.import ?? {}) as Partial<Searched>;
  const roots = named.map((path) => resolve(home.dir, underHome(path, userHome(io))));
  if (roots.length === 0 || !isConfigForeign(home, io)) return { roots, exclude };
  status(
    `Ignored import.roots of ${file}: the file came with the home, or has changed since it was trusted (trust it with: tape trust ${shellWord(home.dir)})`,
  );
  return { roots: [], exclude };
}

/** The home directory of the user. */
export function userHome({ env }: Pick<Context['io'], 'env'>): string {
  return env.HOME === undefined || env.HOME === '' ? homedir() : env.HOME;
}

function underHome(path: string, home: string): string {
  return path === '~' || path.startsWith('~/') ? join(home, path.slice(1)) : path;
}
