import { type Copied, type CopyOptions, copyTapes, type HomeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { shellWord } from '../escape.ts';
import { exit } from '../exit.ts';
import { graphLines } from '../graph-file.ts';
import { type Home, homeAt, openForReading, openForWriting } from '../home.ts';
import { isSame } from '../origin.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const copy: Verb = defineVerb({
  command: 'copy <from> <to> [names..]',
  group: 'Share',
  summary: 'Copy sessions of a home to another home, also to and from a server',
  detail:
    'Copies all sessions, or those of some names, each with all that it inherits from. A home is a directory, or the address of a schema on a ' +
    'PostgreSQL server. Sessions keep their ids, hashes, other names and lineage. Each family of sessions is verified, and is there as a whole or not at all: to continue ' +
    'after an interruption, or when the first home has grown, copy again. A session that went on in another way in the second home is left out, and stays as it is there. ' +
    'What was erased in the first home, and is in the second, stays there: the copy names it. Messages that wait, worktrees and config.yaml are not copied.',
  examples: [
    ['tape copy .tape ../archive', 'Copy all sessions to the home ../archive'],
    ['tape copy .tape ../archive main --tree', 'Copy main with all that descends from it'],
    ['tape copy .tape ../archive --json', 'Print what was copied as JSON'],
  ],
  arguments: {
    from: 'Home that is read: a directory or postgres://HOST/DATABASE',
    to: 'Home that is written; made if it does not exist',
    names: 'Only these sessions, and what they inherit from',
  },
  options: {
    tree: { type: 'boolean', describe: 'Also all sessions that descend from those that are named' },
  },
  run: async ({ from, to, names = [], tree = false }, context) => {
    const { io, answer, status } = context;
    if (context.options.home !== undefined)
      throw new UsageError('cannot copy with --home: FROM and TO name the homes');
    const source = homeAt(from, io);
    const target = homeAt(to, io);
    if (isSame(source.dir, target.dir))
      throw new UsageError(`cannot copy '${source.name}' to itself`, { data: { home: source.name } });
    if (tree && names.length === 0)
      throw new UsageError('cannot copy a tree: name the session that it begins with');
    const copied =
      names.length === 0
        ? await copyHome(source, target, context)
        : await copySessions(source, target, { names, trees: tree }, context);
    const { sessions, changed, entries, refused, behind, stillThere, waiting } = copied;
    await answer({
      json: {
        home: target.name,
        ...{ sessions, changed, entries },
        refused: refused.map(({ session, error: { code, message } }) => ({ session, code, message })),
        behind,
        still_there: stillThere,
        waiting,
      },
      quiet: target.name,
      human:
        changed === 0 && refused.length === 0
          ? `${target.name} has ${counted(sessions, 'session')} of ${source.name} already: nothing to do`
          : `Copied ${counted(entries, 'entry', 'entries')} of ${changed} of ${counted(sessions, 'session')} to ${target.name}, all hashes match`,
    });
    for (const { session, error } of refused) status(`${session} was left out: ${error.message}`);
    for (const { session, items } of waiting)
      status(`${session} has ${counted(items, 'message')} in its inbox, which stay there`);
    const [out, into] = [source, target].map(({ name }) => `--home ${shellWord(name)}`);
    for (const erased of stillThere)
      status(
        `${erased} was erased in ${source.name}, and is still in ${target.name}: erase it with: tape ${erased.includes('@') ? 'redact' : 'purge'} ${shellWord(erased)} --reason TEXT ${into}`,
      );
    if (refused.some(({ error }) => error.code === 'TAPE_CORRUPT')) {
      status(`Hint: find the damage with: tape check ${out}`);
      return exit.damaged;
    }
    if (refused.length > 0) {
      status(`Hint: take one in beside it with: tape export NAME ${out} | tape import - --as NEW ${into}`);
      return exit.conflict;
    }
    if (behind.length === 0) return exit.done;
    status(`${counted(behind.length, 'session')} went on during the copy: copy again`);
    return exit.failed;
  },
});

/** Copies each realm of a home. A new home gets the base of the first one. */
async function copyHome(source: Home, target: Home, context: Context): Promise<Copied> {
  const all: Copied[] = [];
  let bases: readonly (string | undefined)[] = [undefined];
  for (let i = 0; i < bases.length; i += 1) {
    const base = bases[i];
    using reading = await openForReading({ ...source, ...(base !== undefined && { base }) }, context.io);
    if (i === 0) bases = [undefined, ...reading.otherRealms().map(({ realm }) => realm)];
    using writing = await openTarget(target, reading, context);
    if (i === 0 && writing.count().sessions === 0) writing.keepBase(reading.base);
    all.push(await copyFrom(reading, { source, writing }, context));
  }
  const sum = (of: 'sessions' | 'changed' | 'entries') => all.reduce((n, one) => n + one[of], 0);
  return {
    ...{ sessions: sum('sessions'), changed: sum('changed'), entries: sum('entries') },
    refused: all.flatMap(({ refused }) => refused),
    behind: all.flatMap(({ behind }) => behind),
    stillThere: all.flatMap(({ stillThere }) => stillThere),
    waiting: all.flatMap(({ waiting }) => waiting),
  };
}

/** Copies named sessions of the base of a home. */
async function copySessions(
  source: Home,
  target: Home,
  { names, trees }: { readonly names: readonly string[]; readonly trees: boolean },
  context: Context,
): Promise<Copied> {
  const { base } = context.options;
  using reading = await openForReading({ ...source, ...(base !== undefined && { base }) }, context.io);
  const sessions = names.map((name) => needSession(reading, name).id);
  using writing = await openTarget(target, reading, context);
  if (writing.count().sessions === 0) writing.keepBase(reading.base);
  return await copyFrom(reading, { source, writing, sessions, trees }, context);
}

async function openTarget(target: Home, { base }: HomeStore, { io }: Context): Promise<HomeStore> {
  return await openForWriting({ ...target, base }, io);
}

async function copyFrom(
  reading: HomeStore,
  { source, writing, ...what }: CopyOptions & { readonly source: Home; readonly writing: HomeStore },
  context: Context,
): Promise<Copied> {
  const copied = await withProgress(
    { ...context, home: source },
    async (progress) =>
      await copyTapes(reading, writing, { ...what, onProgress: progress('Copying sessions') }),
  );
  for (const line of graphLines(writing.graphFile)) context.status(line);
  return copied;
}
