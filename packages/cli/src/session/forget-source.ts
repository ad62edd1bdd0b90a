import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Source, SourceTable } from '@tapedeck/runtime/import';
import { type HomeStore, TapeError } from '@tapedeck/tape';
import { nameFault } from '@tapedeck/tape/store';
import { userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { commandLine, pathText, shellLine } from '../escape.ts';
import { exit } from '../exit.ts';
import { hasDatabase } from '../home.ts';
import { counted } from '../output/counted.ts';
import { erasing, whileShown } from '../output/progress.ts';
import { forgottenSource } from './conversations.ts';
import { type Holding, holdingsOf, inTurn, leftIn, type Origin, originIn } from './holdings.ts';
import { contentLeft, mayContain, trafficOf } from './traffic.ts';

/** What the redactions of a forgotten source say. */
const reason = 'its source was forgotten';

/**
 * Erases what was imported of a source, and remembers on its tapes not to take it again. `named`: a path, the tool's id of a
 * session, or the name of a session here. A conversation is forgotten as a whole, with its branches and subagents, under each
 * path where it was seen, and with what copies of it have in other sessions.
 * @throws NotFoundError for what is no source
 * @throws UsageError for what can be two
 */
export async function forgetSource(
  named: string,
  { dryRun = false }: { readonly dryRun: boolean | undefined },
  context: Context,
): Promise<number> {
  const { io, home, reading, writing, answer, status, inHome } = context;
  const { SourceTable } = await import('@tapedeck/runtime/import');
  const table = SourceTable.open(join(home.dir, 'sources.jsonl'));
  const { sources, origins } = await meantBy(named, table, context);
  await (dryRun ? reading : writing)(async (store) => {
    const look = await holdingsOf(store, origins);
    let found = look();
    const isMeant = ({ origin }: { readonly origin: Origin }) => origins.some((one) => isSame(one, origin));
    const left = leftIn(store).filter(isMeant);
    let isWiped: boolean | undefined;
    if (!dryRun) {
      // Remembered first: a process that is killed in between erases the rest when it is repeated. An import that is under way looks
      // into the table when the tapes say so.
      const at = io.now();
      table.forget(sources.map(({ project: _, first: __, ...rest }) => ({ forgottenAt: at, ...rest })));
      await remember(store, origins, found);
      if (!found.some(isOwn)) {
        // From now on no import makes a session of it. One can have made some before.
        const made = look().filter((one) => one.isCopy || !one.isDeleted);
        if (made.some(isOwn)) await remember(store, origins, made);
        found = made;
      }
      const erase = async (holdings: readonly Holding[]) => {
        for (const { id, seqs } of inTurn(holdings))
          if (seqs.length > 0)
            await whileShown(context, erasing, () => store.entries.redact(id, seqs, reason));
      };
      await erase(found);
      // An import that was under way can have written what it read just before it saw that the source was forgotten, or a copy erased.
      await erase(look());
      // What killed imports left of other sources can have copies. One that is under way begins anew, since something was erased.
      // Last, and with nothing to discard, too: it wipes what an act before it could not, which may have been killed.
      isWiped = store.imports.discard(leftIn(store).map(({ id }) => id)).wiped;
    }
    const touched = found.filter(({ isCopy, seqs }) => !isCopy || seqs.length > 0);
    const counts = [...found.map(({ seqs }) => seqs.length), ...left.map((one) => one.entries)];
    const entries = counts.reduce((sum, n) => sum + n, 0);
    const names = [...new Set([...touched, ...left].map(({ session }) => session))];
    const files = sources.map(({ path }) => path);
    const others = await Promise.all(touched.map(async ({ id }) => await trafficOf(store, home, id)));
    const quotedBy = [...new Set(others.flat())];
    if (isWiped === false)
      status(
        inHome(
          contentLeft(home, `try again with: ${commandLine('import', [], ['--forget', shellLine(named)])}`),
        ),
      );
    await answer({
      json: {
        ...{ forgotten: files, names, entries, quoted_by: quotedBy },
        ...(dryRun ? { dry_run: true } : { log_emptied: isWiped }),
      },
      quiet: files.join('\n'),
      human: `${dryRun ? 'Would forget' : 'Forgot'} ${counted(files.length, 'file')}, and ${dryRun ? 'erase' : 'erased'} ${counted(entries, 'entry', 'entries')} of ${counted(names.length, 'session')}${dryRun ? '' : ', which cannot be undone'}${mayContain(quotedBy)}`,
    });
  });
  return exit.done;
}

/** What a word names: conversations, and the files of them that are known. */
interface Meant {
  readonly origins: readonly Origin[];
  readonly sources: readonly Source[];
}

/** @throws NotFoundError for what is no source */
async function meantBy(named: string, table: SourceTable, context: Context): Promise<Meant> {
  const { home, reading } = context;
  const path = resolve(context.io.cwd, named);
  const isNamed = (one: Source) => one.path === path || one.session === named || one.main === named;
  const known = table.all.filter(isNamed);
  if (known.length > 0) {
    await assertOne(named, { path, known }, context);
    return { origins: known, sources: filesOf(known, table) };
  }
  const inFile = existsSync(path) ? await sourcesIn(path, context) : [];
  const imported = hasDatabase(home) ? await reading(async (store) => originNamed(store, named)) : undefined;
  if (inFile.length > 0) {
    if (imported !== undefined && !inFile.every((one) => isSame(one, imported)))
      throw new UsageError(
        `cannot forget '${named}': a session has this name, and so has ${pathText(path)}`,
        {
          hint: `name the one as ${pathText(path)}, or the other one by its id; see: tape sessions`,
        },
      );
    return { origins: inFile, sources: inFile };
  }
  if (imported !== undefined) return { origins: [imported], sources: filesOf([imported], table) };
  const why = existsSync(path)
    ? 'no transcript is found in it'
    : 'it is no file, and no session that was imported';
  throw new NotFoundError(`cannot forget '${named}': ${why}`, { source: named });
}

/**
 * Erasing cannot be undone: a word that is the name of one session here and the tool's id of another one says too little.
 * @throws UsageError for such a word
 */
async function assertOne(
  named: string,
  { path, known }: { readonly path: string; readonly known: readonly Source[] },
  { home, reading }: Context,
): Promise<void> {
  if (!hasDatabase(home) || known.some((one) => one.path === path)) return;
  const here = await reading(async (store) => {
    const own = store.sessions.find(named);
    const origin = own && originIn(store, own.id);
    return origin && { id: own.id, ...origin };
  });
  if (here === undefined || known.some((one) => isSame(one, here))) return;
  throw new UsageError(
    `cannot forget '${named}': a session has this name, and another one has it as its id`,
    {
      hint: `name the file of the one: ${known.map((one) => pathText(one.path)).join(', ')}; or the other one: ${here.id}`,
    },
  );
}

/** Whether two are one conversation of a tool. */
function isSame(one: Origin, other: Origin): boolean {
  return one.tool === other.tool && one.main === other.main;
}

/** The files of some conversations that were read. */
function filesOf(origins: readonly Origin[], table: SourceTable): readonly Source[] {
  return table.all.filter((one) => origins.some(({ tool, main }) => one.tool === tool && one.main === main));
}

/** The conversation of a session, by its name here or by the tool's id of it, whatever is left of its files. */
function originNamed(store: HomeStore, named: string): Origin | undefined {
  const own = store.sessions.find(named);
  const origin = own && originIn(store, own.id);
  if (origin !== undefined) return origin;
  for (const { id } of store.sessions.list({ all: true, allRealms: true })) {
    const one = originIn(store, id);
    if (one?.main === named) return one;
  }
  return leftIn(store).find(({ session, origin }) => origin.main === named || session === named)?.origin;
}

/** What can be said of the transcripts of a file or folder of which none was read. */
async function sourcesIn(path: string, { io }: Pick<Context, 'io'>): Promise<readonly Source[]> {
  const { discover, transcriptTools } = await import('@tapedeck/runtime/import');
  const place = { env: io.env, home: userHome(io) };
  const { files } = await discover({ place, tools: transcriptTools, paths: [path] });
  const { openFile, stateOf } = await import('@tapedeck/runtime/internal');
  return await Promise.all(
    files.map(async (file) => {
      const forgotten = forgottenSource(file, io.now());
      if (file.role !== 'main') return forgotten;
      const handle = openFile(file.path);
      try {
        // A copy is known by what it begins with, whatever it is called.
        return { ...forgotten, read: await stateOf(handle) };
      } finally {
        handle.close();
      }
    }),
  );
}

/** Writes on the tapes that their source was forgotten; on a tape of its own, where it was not imported. */
async function remember(
  store: HomeStore,
  origins: readonly Origin[],
  found: readonly Holding[],
): Promise<void> {
  const { forgottenDraft, originDraft } = await import('@tapedeck/runtime/internal');
  const own = found.filter(isOwn);
  for (const { id } of own.filter((one) => !one.isDeleted)) {
    try {
      store.entries.append(id, [forgottenDraft()]);
    } catch (error) {
      // An archived session takes nothing, of any source.
      if (!(error instanceof TapeError) || error.code !== 'TAPE_ARCHIVED') throw error;
    }
  }
  if (own.length > 0) return;
  for (const [name, { tool, main }] of new Map(origins.map((one) => [`${one.tool} ${one.main}`, one]))) {
    const isFree = nameFault(main) === undefined && store.sessions.find(main) === undefined;
    const { id } = store.sessions.open(isFree ? main : `forgotten ${name}`.replace(/\W+/g, '-').slice(0, 60));
    store.entries.append(id, [originDraft({ format: tool, session: main }), forgottenDraft()]);
    store.sessions.update(id, { lifecycle: 'destroyed' });
  }
}

/** Whether a session was imported from what is forgotten. */
function isOwn({ isCopy }: Holding): boolean {
  return !isCopy;
}
