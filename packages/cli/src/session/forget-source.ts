import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Source, SourceTable } from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { NotFoundError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import { erasing, whileShown } from '../output/progress.ts';

/** What the redactions of a forgotten source say. */
const reason = 'its source was forgotten';

/**
 * Erases what was imported of a source, and remembers not to take it again. `named`: a path, or the tool's id of a session.
 * A conversation is forgotten as a whole, with its subagents and under each path where it was seen.
 * @throws NotFoundError for what is no source
 */
export async function forgetSource(
  named: string,
  { dryRun }: { readonly dryRun: boolean | undefined },
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
  await (dryRun === true ? reading : writing)(async (store) => {
    const found = importedOf(store, sources);
    if (dryRun !== true) {
      // Remembered first: a process that is killed in between erases the rest when it is repeated.
      table.put(sources.map((source) => ({ ...source, forgottenAt: source.forgottenAt ?? io.now() })));
      for (const { id, seqs } of found)
        if (seqs.length > 0) await whileShown(context, erasing, () => store.entries.redact(id, seqs, reason));
    }
    const entries = found.reduce((sum, { seqs }) => sum + seqs.length, 0);
    const names = found.map(({ session }) => session);
    const files = sources.map(({ path }) => path);
    await answer({
      json: { forgotten: files, names, entries, ...(dryRun === true && { dry_run: true }) },
      quiet: files.join('\n'),
      human: `${dryRun === true ? 'Would forget' : 'Forgot'} ${counted(files.length, 'file')}, and ${dryRun === true ? 'erase' : 'erased'} ${counted(entries, 'entry', 'entries')} of ${counted(names.length, 'session')}`,
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
  const { beginning } = await import('@tapedeck/runtime/internal');
  const place = { env: io.env, home: userHome(io) };
  const { files } = await discover({ place, tools: transcriptTools, paths: [path] });
  return files.map(({ path: at, facts, tool, session, main, role }) => ({
    ...{ path: at, ...facts, tool: tool.name, session, main, role },
    ...{ read: beginning, at: io.now() },
  }));
}

/** The sessions that were imported from some sources, and the entries in them that have content. */
function importedOf(store: SqliteTapeStore, sources: readonly Source[]) {
  // The session of a subagent is named after the agent, and its source after the conversation, too.
  const ids = new Set(sources.map(({ session }) => session.split('/').at(-1) ?? session));
  return store.sessions.list({ all: true, allRealms: true }).flatMap(({ id, session }) => {
    const [origin] = store.entries.read(id, { from: 2, to: 2, own: true });
    const isOf =
      origin?.name === 'import/source' &&
      isObject(origin.payload) &&
      typeof origin.payload.session === 'string' &&
      ids.has(origin.payload.session);
    if (!isOf) return [];
    const seqs = [...store.entries.read(id, { from: 3, own: true })]
      .filter(({ kind }) => kind !== 'rewind' && kind !== 'redaction')
      .map(({ seq }) => seq);
    return [{ id, session, seqs }];
  });
}
