import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '@tapedeck/tape/internal';
import { nearNames } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { ConfigError, NotFoundError, UsageError } from '../errors/kinds.ts';
import { shellWord } from '../escape.ts';
import type { Home } from '../home.ts';
import { isConfigForeign } from '../origin.ts';
import { homeConfigFile } from './find.ts';

/** A remote of a home, as `config.yaml` names it. */
export interface NamedRemote {
  readonly name: string;
  readonly url: string;
}

const namePattern = /^[A-Za-z][\w-]{0,63}$/;

/** Why a remote cannot have a name; undefined when it can. Pure. */
export function remoteNameFault(name: string): string | undefined {
  return namePattern.test(name)
    ? undefined
    : 'its name must be letters, digits, - and _, at most 64, and begin with a letter';
}

/**
 * The remotes of a home. Loads YAML only for a file that can have some. Those of a file that came with the home do not
 * count: it would send to places that the user did not name.
 * @throws ConfigError for a file that is no YAML
 */
export async function readRemotes({
  home,
  io,
  status,
}: Pick<Context, 'home' | 'io' | 'status'>): Promise<readonly NamedRemote[]> {
  const remotes = await remotesIn(home);
  if (remotes.length === 0 || !isConfigForeign(home, io)) return remotes;
  status(
    `Ignored remotes of ${homeConfigFile(home)}: the file came with the home, or has changed since it was trusted (trust it with: tape trust ${shellWord(home.dir)})`,
  );
  return [];
}

/** The remotes that `config.yaml` of a home names, also of a home that came from elsewhere. */
export async function remotesIn(home: Pick<Home, 'dir'>): Promise<readonly NamedRemote[]> {
  const file = homeConfigFile(home);
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) return [];
  const text = readFileSync(file, 'utf8');
  if (!text.includes('remotes')) return [];
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
  return given(data).flatMap(([name, remote]) =>
    isObject(remote) && typeof remote.url === 'string' && remoteNameFault(name) === undefined
      ? [{ name, url: remote.url }]
      : [],
  );
}

/** The fields of a configuration that name where a home sends to and pulls from. Pure. */
export function remoteKeys(data: unknown): readonly string[] {
  return given(data).map(([name]) => `remotes.${name}.url`);
}

function given(data: unknown): readonly (readonly [name: string, remote: unknown])[] {
  return isObject(data) && isObject(data.remotes) ? Object.entries(data.remotes) : [];
}

/** Has nothing print the passwords and tokens of URLs. */
export async function hideUrls(
  urls: readonly string[],
  { hide }: Pick<Context['io'], 'hide'>,
): Promise<void> {
  const withUser = urls.filter((url) => url.includes('@'));
  if (withUser.length === 0) return;
  const { urlSecrets } = await import('@tapedeck/tape/remotes');
  hide(withUser.flatMap(urlSecrets).map((value) => ({ name: 'remote', value })));
}

/**
 * The remote to use: the named one, else the only one, else `origin`.
 * @throws NotFoundError; UsageError where none is named and several could be meant
 */
export function remoteFor(
  remotes: readonly NamedRemote[],
  name: string | undefined,
  act: string,
): NamedRemote {
  const named = remotes.map((one) => one.name);
  if (name !== undefined) {
    const found = remotes.find((one) => one.name === name);
    if (found !== undefined) return found;
    throw new NotFoundError(`cannot ${act}: there is no remote '${name}'`, {
      remote: name,
      near: nearNames(name, named),
    });
  }
  const [first, second] = remotes;
  if (first === undefined)
    throw new UsageError(`cannot ${act}: the home has no remote`, {
      hint: 'name one with: tape remote add origin URL',
    });
  const found = second === undefined ? first : remotes.find((one) => one.name === 'origin');
  if (found !== undefined) return found;
  throw new UsageError(`cannot ${act}: the home has several remotes`, {
    data: { remotes: named },
    hint: `choose one with --remote: ${named.join(', ')}`,
  });
}

/** Where a home keeps what it has seen of a remote. Another URL has another place. */
export function remoteState(home: Pick<Home, 'dir'>, { name, url }: NamedRemote): string {
  const digest = createHash('sha256').update(url).digest('hex').slice(0, 12);
  return join(home.dir, 'remotes', `${name}.${digest}`);
}

/** Removes what a home keeps of a remote, under any URL that it had. */
export function forgetRemote(home: Pick<Home, 'dir'>, name: string): void {
  const dir = join(home.dir, 'remotes');
  // A link may have come with the home, and lead out of it.
  if (lstatSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) return;
  for (const one of readdirSync(dir))
    if (one.startsWith(`${name}.`) && /\.[0-9a-f]{12}$/.test(one))
      rmSync(join(dir, one), { recursive: true, force: true });
}
