import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { ConfigError } from '../errors/kinds.ts';
import type { Io } from '../io.ts';
import { importedFiles } from './imports.ts';
import type { ConfigFile } from './load.ts';
import { type Grant, readGrants, trustFile } from './trust-file.ts';

/** The grant for a configuration file with its current content. */
export function grantOf({ path, bytes }: ConfigFile): Grant {
  return {
    dir: realpathSync(dirname(path)),
    config: basename(path),
    sha256: createHash('sha256').update(bytes).digest('hex'),
    imports: importedFiles(path),
  };
}

/** `changed`: the file differs from the recorded grant; `unknown`: its directory has no grant. */
export type Trust = 'trusted' | 'changed' | 'unknown';

export function trustOf(grant: Grant, grants: readonly Grant[]): Trust {
  const recorded = grants.find(({ dir }) => dir === grant.dir);
  if (recorded === undefined) return 'unknown';
  const isSame = recorded.config === grant.config && recorded.sha256 === grant.sha256;
  return isSame && changedImports(grant, recorded).length === 0 ? 'trusted' : 'changed';
}

/** The imports of a grant that another one does not cover as they are. */
function changedImports({ imports }: Grant, recorded: Grant): readonly string[] {
  return imports
    .filter(({ path, sha256 }) => !recorded.imports.some((one) => one.path === path && one.sha256 === sha256))
    .map(({ path }) => path);
}

/**
 * Refuses a configuration file that the user has not trusted with its current content.
 * @throws ConfigError CLI_UNTRUSTED
 */
export function needTrust(file: ConfigFile, io: Pick<Io, 'env'>): void {
  const grant = grantOf(file);
  const grants = readGrants(trustFile(io));
  const trust = trustOf(grant, grants);
  if (trust === 'trusted') return;
  const recorded = grants.find(({ dir, sha256 }) => dir === grant.dir && sha256 === grant.sha256);
  const [changed] = recorded === undefined ? [] : changedImports(grant, recorded);
  const what = changed === undefined ? 'it is code, and' : `it is code, and '${changed}', which it imports,`;
  const why = trust === 'changed' ? `${what} has changed since it was trusted` : `${what} is not trusted`;
  throw new ConfigError('CLI_UNTRUSTED', `cannot use '${file.path}': ${why}`, {
    data: { config: file.path, dir: grant.dir, changed: trust === 'changed' },
  });
}
