import { realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { configIn, configNames } from '../config/find.ts';
import { readConfig } from '../config/load.ts';
import { grantOf, trustOf } from '../config/trust.ts';
import { changeGrants, type Grant, readGrants, trustFile } from '../config/trust-file.ts';
import { isHome, trustedHomes, trustHome, untrustHome } from '../config/trust-home.ts';
import type { Context } from '../context.ts';
import { ConfigError, NotFoundError, UsageError } from '../errors/kinds.ts';
import { jsonText, safe, shellWord } from '../escape.ts';
import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import { defineVerb, type Verb } from './verb.ts';

export const trust: Verb = defineVerb({
  command: 'trust [dir]',
  group: 'Trust',
  summary: 'Allow tape to use a home, or the configuration code of a directory',
  detail:
    'DIR with tape.db is a tape home. Verbs that run or write refuse a home that they found in or above the working directory and ' +
    'that you did not create here: one of a repository, or one that was moved or restored. trust shows what it brings in, and ' +
    'allows it; what it had before that can make something run, such as approvals, still does not count. ' +
    'Any other DIR has a configuration. Verbs that run a model load the nearest tape.config.mts (.mjs, .js), which runs with your permissions. They refuse until you ' +
    'trust its directory, and again after the file changes. Read the file first, and the local files that it imports, which the trust covers, too. ' +
    'Without DIR, lists what is trusted. The records are in $XDG_CONFIG_HOME/tape, else ~/.config/tape. TAPE_TRUST_HOME=1 trusts every home.',
  examples: [
    ['tape trust .', 'Trust the current configuration of this directory'],
    ['tape trust .tape --dry-run', 'Show what a home brings in'],
    ['tape trust . --revoke', 'Revoke the trust'],
    ['tape trust', 'List trusted configurations and homes'],
  ],
  arguments: { dir: 'Tape home, or directory of the configuration (default: list all)' },
  options: {
    'dry-run': { type: 'boolean', describe: 'Only show what the home brings in' },
    revoke: { type: 'boolean', describe: 'Revoke the trust' },
  },
  conflicts: { 'dry-run': ['revoke'] },
  run: async ({ dir, revoke, dryRun }, context) => {
    if (dir === undefined && revoke === true)
      throw new UsageError('cannot revoke trust: no directory was named', {
        hint: 'list trusted directories with: tape trust',
      });
    if (dir === undefined) return await list(context);
    const at = resolve(context.io.cwd, dir);
    if (isHome(at))
      return revoke === true
        ? await untrustHome(at, context)
        : await trustHome(at, { isDryRun: dryRun === true }, context);
    if (dryRun === true)
      throw new UsageError(`cannot show what '${at}' brings in: it has no tape.db`, { data: { dir: at } });
    return revoke === true ? await takeBack(at, context) : await give(at, context);
  },
});

async function give(dir: string, { io, answer }: Context): Promise<number> {
  const stat = statSync(dir, { throwIfNoEntry: false });
  if (stat === undefined) throw new NotFoundError(`cannot trust '${dir}': no such directory`, { dir });
  if (!stat.isDirectory())
    throw new UsageError(`cannot trust '${dir}': it is not a directory`, { data: { dir } });
  const path = configIn(dir);
  const tapeHome = join(dir, '.tape');
  if (path === undefined)
    throw new NotFoundError(`cannot trust '${dir}': it has no ${configNames.join(', ')}`, {
      dir,
      ...(isHome(tapeHome) && { tapeHome }),
    });
  const grant = grantOf(readConfig(path, { found: true }));
  let before = trustOf(grant, []);
  await changeGrants(trustFile(io), (grants) => {
    before = trustOf(grant, grants);
    if (before === 'trusted') return undefined;
    return [...grants.filter((other) => other.dir !== grant.dir), grant];
  });
  const files =
    grant.imports.length === 0
      ? path
      : `${path}, with ${counted(grant.imports.length, 'file')} that it imports`;
  await answer({
    json: { ...grant, trusted: true, repeated: before === 'trusted' },
    quiet: grant.dir,
    human: {
      trusted: `${path} is trusted already: nothing to do`,
      changed: `Trusted ${files} again after a change (undo with: tape trust ${shellWord(dir)} --revoke)`,
      unknown: `Trusted ${files} (undo with: tape trust ${shellWord(dir)} --revoke)`,
    }[before],
  });
  return exit.done;
}

async function takeBack(at: string, { io, answer }: Context): Promise<number> {
  // Trust in a directory that no longer exists can be revoked.
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
      imports: revoked?.imports ?? null,
      trusted: false,
      repeated: revoked === undefined,
    },
    quiet: dir,
    human:
      revoked === undefined
        ? `${dir} is not trusted: nothing to do`
        : `Revoked trust in ${join(dir, revoked.config)} (trust it again with: tape trust ${shellWord(dir)})`,
  });
  return exit.done;
}

async function list({ io, options, status }: Context): Promise<number> {
  const grants = readGrants(trustFile(io)).map((grant) => ({ ...grant, state: stateOf(grant) }));
  const all = [...grants, ...trustedHomes(io.env)];
  if (options.jsonl === true) for (const one of all) await io.out(`${jsonText(one)}\n`);
  else if (options.json === true) await io.out(`${jsonText(all)}\n`);
  else if (options.quiet === true) for (const { dir } of all) await io.out(`${safe(dir)}\n`);
  else
    for (const { dir, config, state } of all)
      await io.out(`${safe(`${state.padEnd(7)}  ${config === null ? dir : join(dir, config)}`)}\n`);
  if (all.length === 0) status('No trusted configurations or homes');
  return exit.done;
}

/** Whether the current file is the one that was trusted. */
function stateOf(grant: Grant): 'trusted' | 'changed' | 'gone' {
  const path = configIn(grant.dir);
  if (path === undefined) return 'gone';
  try {
    return trustOf(grantOf(readConfig(path, { found: true })), [grant]) === 'trusted' ? 'trusted' : 'changed';
  } catch (error) {
    // A link or a directory has replaced the file.
    if (error instanceof ConfigError) return 'changed';
    throw error;
  }
}
