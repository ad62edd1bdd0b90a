import { realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { configIn, configNames } from '../config/find.ts';
import { readConfig } from '../config/load.ts';
import { grantOf, trustOf } from '../config/trust.ts';
import { changeGrants, type Grant, readGrants, trustFile } from '../config/trust-file.ts';
import type { Context } from '../context.ts';
import { ConfigError, NotFoundError, UsageError } from '../errors/kinds.ts';
import { safe, shellWord } from '../escape.ts';
import { exit } from '../exit.ts';
import { defineVerb, type Verb } from './verb.ts';

export const trust: Verb = defineVerb({
  command: 'trust [dir]',
  group: 'Trust',
  summary: 'Allow the configuration of a directory to be run as code',
  detail:
    'Verbs that run a model load the tape.config.mts (.mjs, .js) that they find, which can do whatever you can: they refuse to until ' +
    'its directory is trusted, and again when the file has changed. Read it first. What the file imports is not looked at. Without ' +
    'DIR it lists what is trusted. It is recorded outside of any project: $XDG_CONFIG_HOME/tape/trust.json, else ~/.config/tape/trust.json.',
  examples: [
    ['tape trust .', 'Trust the configuration of this directory, as it stands now'],
    ['tape trust . --revoke', 'Take it back'],
    ['tape trust', 'List what is trusted'],
  ],
  options: (y) =>
    y
      .positional('dir', { type: 'string', describe: 'Directory of the configuration; none: list' })
      .option('revoke', { type: 'boolean', describe: 'Trust it no longer' }),
  run: async ({ dir, revoke }, context) => {
    if (dir === undefined && revoke === true)
      throw new UsageError('cannot revoke trust: no directory was named', {
        hint: 'list them with: tape trust',
      });
    if (dir === undefined) return await list(context);
    const at = resolve(context.io.cwd, dir);
    return revoke === true ? await takeBack(at, context) : await give(at, context);
  },
});

async function give(dir: string, { io, answer }: Context): Promise<number> {
  const stat = statSync(dir, { throwIfNoEntry: false });
  if (stat === undefined)
    throw new NotFoundError(`cannot trust '${dir}': there is no such directory`, { dir });
  if (!stat.isDirectory())
    throw new UsageError(`cannot trust '${dir}': it is no directory`, { data: { dir } });
  const path = configIn(dir);
  if (path === undefined)
    throw new NotFoundError(`cannot trust '${dir}': it has no ${configNames.join(', ')}`, { dir });
  const grant = grantOf(readConfig(path, { found: true }));
  let before = trustOf(grant, []);
  await changeGrants(trustFile(io), (grants) => {
    before = trustOf(grant, grants);
    if (before === 'trusted') return undefined;
    return [...grants.filter((other) => other.dir !== grant.dir), grant];
  });
  await answer({
    json: { ...grant, trusted: true, repeated: before === 'trusted' },
    quiet: grant.dir,
    human: {
      trusted: `${path} is trusted already: nothing to do`,
      changed: `Trusted ${path} as it is now, since it had changed (take it back with: tape trust ${shellWord(dir)} --revoke)`,
      unknown: `Trusted ${path} (take it back with: tape trust ${shellWord(dir)} --revoke)`,
    }[before],
  });
  return exit.done;
}

async function takeBack(at: string, { io, answer }: Context): Promise<number> {
  // What is gone can be revoked all the same.
  const dir = statSync(at, { throwIfNoEntry: false }) === undefined ? at : realpathSync(at);
  let revoked: Grant | undefined;
  await changeGrants(trustFile(io), (grants) => {
    revoked = grants.find((grant) => grant.dir === dir);
    return revoked === undefined ? undefined : grants.filter((grant) => grant !== revoked);
  });
  await answer({
    json: {
      dir,
      config: revoked?.config ?? null,
      sha256: revoked?.sha256 ?? null,
      trusted: false,
      repeated: revoked === undefined,
    },
    quiet: dir,
    human:
      revoked === undefined
        ? `${dir} is not trusted: nothing to do`
        : `${join(dir, revoked.config)} is not trusted any more (trust it again with: tape trust ${shellWord(dir)})`,
  });
  return exit.done;
}

async function list({ io, options, status }: Context): Promise<number> {
  const grants = readGrants(trustFile(io)).map((grant) => ({ ...grant, state: stateOf(grant) }));
  if (options.jsonl === true) for (const grant of grants) await io.out(`${JSON.stringify(grant)}\n`);
  else if (options.json === true) await io.out(`${JSON.stringify(grants)}\n`);
  else if (options.quiet === true) for (const { dir } of grants) await io.out(`${safe(dir)}\n`);
  else
    for (const { dir, config, state } of grants)
      await io.out(`${safe(`${state.padEnd(7)}  ${join(dir, config)}`)}\n`);
  if (grants.length === 0) status('Nothing is trusted');
  return exit.done;
}

/** Whether what was trusted is what is there now. */
function stateOf(grant: Grant): 'trusted' | 'changed' | 'gone' {
  const path = configIn(grant.dir);
  if (path === undefined) return 'gone';
  try {
    return trustOf(grantOf(readConfig(path, { found: true })), [grant]) === 'trusted' ? 'trusted' : 'changed';
  } catch (error) {
    // A link or a directory in its place.
    if (error instanceof ConfigError) return 'changed';
    throw error;
  }
}
