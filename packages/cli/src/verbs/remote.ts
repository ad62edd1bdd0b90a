import { TapeError } from '@tapedeck/tape';
import { changeHomeConfig } from '../config/change.ts';
import { forgetRemote, readRemotes, remoteFor, remoteNameFault, remotesIn } from '../config/remotes.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { jsonText, safe, shellWord } from '../escape.ts';
import { exit } from '../exit.ts';
import { getHome } from '../home.ts';
import { assertOwn } from '../origin.ts';
import { tabbed } from '../output/table.ts';
import { defineVerb, type Verb } from './verb.ts';

export const remote: Verb = defineVerb({
  command: 'remote [action] [remote] [url]',
  group: 'Share',
  summary: 'Name the places that sessions are pushed to and pulled from',
  detail:
    'list shows the remotes of the home. add names one, which config.yaml keeps; remove forgets it, and what the home has seen there, ' +
    'and changes nothing at the remote itself. A remote is a directory, also a mounted or a synced one, which the first push makes, a git ' +
    'repository, in which sessions are under a ref of their own, or a home that ssh reaches, at which tape is installed. With one remote, or one that is named origin, push and pull need no --remote.',
  examples: [
    ['tape remote add origin ~/team/tapes', 'Name a directory that is shared'],
    ['tape remote add code git:.', 'Name the repository of the working directory'],
    ['tape remote add work ssh://me@host/~/.tape', 'Name a home on another machine'],
    ['tape remote', 'List the remotes'],
    ['tape remote remove origin', 'Forget it'],
  ],
  arguments: {
    action: { describe: 'What to do (default: list)', choices: ['list', 'add', 'remove'] },
    remote: 'Name of the remote',
    url: 'Directory, git:PATH, git+https://… or ssh://HOST/HOME, for add',
  },
  run: async ({ action = 'list', remote: name, url }, context) => {
    if (action === 'list' && name !== undefined)
      throw new UsageError('cannot list remotes: there are too many arguments');
    if (action === 'list') return await list(context);
    if (name === undefined) throw new UsageError(`cannot ${action} a remote: its name is missing`);
    if (action === 'remove') {
      if (url !== undefined) throw new UsageError(`cannot remove '${name}': there are too many arguments`);
      return await remove(name, context);
    }
    if (url === undefined) throw new UsageError(`cannot add '${name}': the URL is missing`);
    return await add(name, url, context);
  },
});

async function list(context: Context): Promise<number> {
  const { io, options, home, status } = context;
  getHome(home);
  const { shownUrl } = await import('@tapedeck/tape/remotes');
  const remotes = (await readRemotes(context)).map(({ name, url }) => ({ name, url: shownUrl(url) }));
  if (options.jsonl === true) for (const one of remotes) await io.out(`${jsonText(one)}\n`);
  else if (options.json === true) await io.out(`${jsonText(remotes)}\n`);
  else if (options.quiet === true) for (const { name } of remotes) await io.out(`${safe(name)}\n`);
  else for (const { name, url } of remotes) await io.out(`${safe(tabbed([[name, url]]))}\n`);
  // Those that are ignored have been named.
  const isNone = remotes.length === 0 && (await remotesIn(home)).length === 0;
  if (isNone && options.json !== true && options.jsonl !== true)
    status('No remotes (add one with: tape remote add NAME URL)');
  return exit.done;
}

async function add(name: string, given: string, context: Context): Promise<number> {
  const { home, io, answer, inHome } = context;
  const fault = remoteNameFault(name);
  if (fault !== undefined) throw new UsageError(`cannot add the remote '${name}': ${fault}`);
  const { remoteUrl, shownUrl } = await import('@tapedeck/tape/remotes');
  const url = remoteUrl(given, io.cwd);
  const shown = shownUrl(url);
  assertOwn(getHome(home), io);
  const before = (await readRemotes(context)).find((one) => one.name === name);
  if (before !== undefined && before.url !== url)
    throw new TapeError('TAPE_EXISTS', `cannot add the remote '${name}': it is ${shownUrl(before.url)}`, {
      data: { remote: name },
    });
  // Opening the home records that the user has named it: what is written now would else count as what came with it.
  if (before === undefined)
    await context.changing(async () => await changeHomeConfig(['remotes', name, 'url'], url, { home, io }));
  await answer({
    json: { name, url: shown, repeated: before !== undefined },
    quiet: name,
    human:
      before === undefined
        ? inHome(`Added the remote ${name}: ${shown} (undo with: tape remote remove ${name})`)
        : `${name} is ${shown} already: nothing to do`,
  });
  return exit.done;
}

async function remove(name: string, context: Context): Promise<number> {
  const { home, io, answer, inHome } = context;
  assertOwn(getHome(home), io);
  const { url } = remoteFor(await readRemotes(context), name, `remove '${name}'`);
  const { shownUrl } = await import('@tapedeck/tape/remotes');
  const shown = shownUrl(url);
  await context.changing(async () => await changeHomeConfig(['remotes', name], undefined, { home, io }));
  forgetRemote(home, name);
  await answer({
    json: { name, url: shown, repeated: false },
    quiet: name,
    human: inHome(
      `Removed the remote ${name} (add it again with: tape remote add ${name} ${shellWord(shown)})`,
    ),
  });
  return exit.done;
}
