import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { ConfigError } from '../errors/kinds.ts';
import type { Io } from '../io.ts';
import type { ConfigFile } from './load.ts';
import { type Grant, readGrants, trustFile } from './trust-file.ts';

/** The grant for a configuration file with its current content. */
export function grantOf({ path, bytes }: ConfigFile): Grant {
  return {
    dir: realpathSync(dirname(path)),
    config: basename(path),
    sha256: createHash('sha256').update(bytes).digest('hex'),
  };
}

/** `changed`: the file differs from the recorded grant; `unknown`: its directory has no grant. */
export type Trust = 'trusted' | 'changed' | 'unknown';

export function trustOf(grant: Grant, grants: readonly Grant[]): Trust {
  const recorded = grants.find(({ dir }) => dir === grant.dir);
  if (recorded === undefined) return 'unknown';
  return recorded.config === grant.config && recorded.sha256 === grant.sha256 ? 'trusted' : 'changed';
}

/**
 * Refuses a configuration file that the user has not trusted with its current content.
 * @throws ConfigError CLI_UNTRUSTED
 */
export function needTrust(file: ConfigFile, io: Pick<Io, 'env'>): void {
  const grant = grantOf(file);
  const trust = trustOf(grant, readGrants(trustFile(io)));
  if (trust === 'trusted') return;
  const why =
    trust === 'changed'
      ? 'it is code, and has changed since it was trusted'
      : 'it is code, and is not trusted';
  throw new ConfigError('CLI_UNTRUSTED', `cannot use '${file.path}': ${why}`, {
    data: { config: file.path, dir: grant.dir, changed: trust === 'changed' },
  });
}
