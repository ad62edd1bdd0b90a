import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Source, SourceTable } from '@tapedeck/runtime/import';
import { type HomeStore, TapeError } from '@tapedeck/tape';
import { nameFault } from '@tapedeck/tape/store';
import { userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { NotFoundError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import { erasing, whileShown } from '../output/progress.ts';
import { forgottenSource } from './conversations.ts';
import { type Holding, holdingsOf } from './holdings.ts';

/** What the redactions of a forgotten source say. */
const reason = 'its source was forgotten';

/**
 * Erases what was imported of a source, and remembers on its tapes not to take it again. `named`: a path, or the tool's id of
 * a session. A conversation is forgotten as a whole, with its branches and subagents, under each path where it was seen, and
 * with what copies of it have in other sessions.
 * @throws NotFoundError for what is no source
 */
export async function forgetSource(
  named: string,
  { dryRun = false }: { readonly dryRun: boolean | undefined },
  context: Context,
): Promise<number> {
  const { io, home, reading, writing, answer } = context;
  const { SourceTable } = await import('@tapedeck/runtime/import');
  const table = SourceTable.open(join(home.dir, 'sources.jsonl'));
  const sources = await sourcesOf(named, table, context);
  if (sources.length === 0)
    throw new NotFoundError(`cannot forget '${named}': it is no transcript, and no session of one`, {
      source: named,
    });
  await (dryRun ? reading : writing)(async (store) => {
    const found = holdingsOf(store, sources);
    if (!dryRun) {
      // Remembered first: a process that is killed in between erases the rest when it is repeated.
      await remember(store, sources, found);
      const at = io.now();
      table.forget(sources.map(({ project: _, first: __, ...rest }) => ({ forgottenAt: at, ...rest })));
      // What a copy holds is known by what it has in common with the source, which goes last.
      for (const { id, seqs } of found.toSorted((a, b) => Number(b.isCopy) - Number(a.isCopy)))
        if (seqs.length > 0) await whileShown(context, erasing, () => store.entries.redact(id, seqs, reason));
    }
    const touched = found.filter(({ isCopy, seqs }) => !isCopy || seqs.length > 0);
    const entries = found.reduce((sum, { seqs }) => sum + seqs.length, 0);
    const names = touched.map(({ session }) => session);
    const files = sources.map(({ path }) => path);
    await answer({
      json: { forgotten: files, names, entries, ...(dryRun && { dry_run: true }) },
      quiet: files.join('\n'),
      human: `${dryRun ? 'Would forget' : 'Forgot'} ${counted(files.length, 'file')}, and ${dryRun ? 'erase' : 'erased'} ${counted(entries, 'entry', 'entries')} of ${counted(names.length, 'session')}${dryRun ? '' : ', which cannot be undone'}`,
    });
  });
  return exit.done;
}

/** The sources of the conversations that a word names; of a file that was never read, what can be said of it. */
async function sourcesOf(
  named: string,
  table: SourceTable,
  { io }: Pick<Context, 'io'>,
): Promise<readonly Source[]> {
  const path = resolve(io.cwd, named);
  const isNamed = (one: Source) => one.path === path || one.session === named || one.main === named;
  const known = table.all.filter(isNamed);
  if (known.length > 0)
    return table.all.filter((one) => known.some(({ tool, main }) => one.tool === tool && one.main === main));
  if (!existsSync(path)) return [];
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
  sources: readonly Source[],
  found: readonly Holding[],
): Promise<void> {
  const { forgottenDraft, originDraft } = await import('@tapedeck/runtime/internal');
  const own = found.filter(({ isCopy }) => !isCopy);
  for (const { id } of own.filter((one) => !one.isDeleted)) {
    try {
      store.entries.append(id, [forgottenDraft()]);
    } catch (error) {
      // An archived session takes nothing, of any source.
      if (!(error instanceof TapeError) || error.code !== 'TAPE_ARCHIVED') throw error;
    }
  }
  if (own.length > 0) return;
  for (const [name, { tool, main }] of new Map(sources.map((one) => [`${one.tool} ${one.main}`, one]))) {
    const isFree = nameFault(main) === undefined && store.sessions.find(main) === undefined;
    const { id } = store.sessions.open(isFree ? main : `forgotten ${name}`.replace(/\W+/g, '-').slice(0, 60));
    store.entries.append(id, [originDraft({ format: tool, session: main }), forgottenDraft()]);
    store.sessions.update(id, { lifecycle: 'destroyed' });
  }
}
