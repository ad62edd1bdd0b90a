import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { isObject } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { ConfigError } from '../errors/kinds.ts';
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
 * What `config.yaml` of a home says about imports. Loads YAML only for a file that can say something. The folders of a file
 * that came with the home do not count: they are none that the user named. What it leaves out counts whoever wrote it.
 * @throws ConfigError for a file that is no YAML
 */
export async function readSearched({
  home,
  io,
  status,
}: Pick<Context, 'home' | 'io' | 'status'>): Promise<Searched> {
  const file = homeConfigFile(home);
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) return { roots: [], exclude: [] };
  const text = readFileSync(file, 'utf8');
  if (!text.includes('import')) return { roots: [], exclude: [] };
  const { parse } = await import('yaml');
  let data: unknown;
  try {
    data = parse(text, { stringKeys: true, prettyErrors: false, logLevel: 'error' });
  } catch (cause) {
    throw new ConfigError('CLI_BAD_CONFIG', `cannot use '${file}': ${(cause as Error).message}`, {
      data: { config: file },
      cause,
    });
  }
  const given = isObject(data) && isObject(data.import) ? data.import : {};
  const exclude = textsIn(given.exclude);
  const roots = textsIn(given.roots).map((path) => resolve(home.dir, underHome(path, userHome(io))));
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

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
