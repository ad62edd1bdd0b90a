import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { ConfigError } from '../errors/kinds.ts';
import type { Io } from '../io.ts';
import type { ConfigFile } from './load.ts';
import { type Grant, readGrants, trustFile } from './trust-file.ts';

/** What trusting a configuration file as it stands now would record. */
export function grantOf({ path, bytes }: ConfigFile): Grant {
  return {
    dir: realpathSync(dirname(path)),
    config: basename(path),
    sha256: createHash('sha256').update(bytes).digest('hex'),
  };
}

/** How a configuration file stands to what was recorded: `changed` since, or never `trusted`. */
export type Trust = 'trusted' | 'changed' | 'unknown';

export function trustOf(grant: Grant, grants: readonly Grant[]): Trust {
  const recorded = grants.find(({ dir }) => dir === grant.dir);
  if (recorded === undefined) return 'unknown';
  return recorded.config === grant.config && recorded.sha256 === grant.sha256 ? 'trusted' : 'changed';
}

/**
 * Lets a configuration file that was found go on only when somebody has trusted its directory, with these bytes in it.
 * @throws ConfigError
 */
export function needTrust(file: ConfigFile, io: Pick<Io, 'env'>): void {
  const grant = grantOf(file);
  const trust = trustOf(grant, readGrants(trustFile(io)));
  if (trust === 'trusted') return;
  const why =
    trust === 'changed'
      ? 'it is code, and has changed since it was trusted'
      : 'it is code, and nobody has trusted it';
  throw new ConfigError('CLI_UNTRUSTED', `cannot use '${file.path}': ${why}`, {
    data: { config: file.path, dir: grant.dir, changed: trust === 'changed' },
  });
}
