import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Source, SourceTable } from '@tapedeck/runtime/import';
import type { HomeStore } from '@tapedeck/tape';
import { userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { pathText } from '../escape.ts';
import { hasDatabase } from '../home.ts';
import { forgottenSource } from '../import/conversations.ts';
import { sayLeftOut } from '../import/left-out.ts';
import { idOf, isSame, leftIn, type Origin, originIn } from './holdings.ts';

/** What a word names: conversations, and the files of them that are known. */
export interface SourcesMeant {
  readonly origins: readonly Origin[];
  readonly sources: readonly Source[];
}

/**
 * What is meant by a path, the tool's id of a session, or the name of a session here. A path means what was read of it, also
 * where that is no longer there, as what a tool has deleted, and what it has now.
 * @throws NotFoundError for what is no source
 * @throws UsageError for what can be two, and for the root of all files
 */
export async function sourcesMeant(
  named: string,
  table: SourceTable,
  context: Context,
): Promise<SourcesMeant> {
  const { home, reading } = context;
  const path = resolve(context.io.cwd, named);
  // Also what a shell makes of `$dir/` where that is not set.
  if (dirname(path) === path)
    throw new UsageError(`cannot forget '${named}': it has all files of the machine`);
  const readAt = await readBelow(path, table);
  const inside = existsSync(path) ? await sourcesIn(path, table, context) : [];
  const there = [...readAt, ...inside];
  const byId = table.all.filter((one) => one.session === named || one.main === named);
  const here = hasDatabase(home) ? await reading(async (store) => sessionNamed(store, named)) : undefined;
  if (there.length > 0) {
    const isOther = (one: Origin) => !there.every((source) => isSame(source, one));
    if ((here !== undefined && isOther(here)) || byId.some(isOther))
      throw new UsageError(
        `cannot forget '${named}': a session has this name, and so has ${pathText(path)}`,
        {
          hint: `name the one as ${pathText(path)}, or the other one by its id; see: tape sessions`,
        },
      );
    return { origins: there, sources: withOthers(there, table) };
  }
  if (byId.length > 0) {
    // Erasing cannot be undone: a word that is the name of one session here and the tool's id of another one says too little.
    if (here?.id !== undefined && !byId.some((one) => isSame(one, here)))
      throw new UsageError(
        `cannot forget '${named}': a session has this name, and another one has it as its id`,
        {
          hint: `name the file of the one: ${byId.map((one) => pathText(one.path)).join(', ')}; or the other one: ${here.id}`,
        },
      );
    return { origins: byId, sources: withOthers(byId, table) };
  }
  if (here !== undefined) return { origins: [here], sources: withOthers([here], table) };
  const why = existsSync(path)
    ? 'no transcript is found in it'
    : 'it is no file, and no session that was imported';
  throw new NotFoundError(`cannot forget '${named}': ${why}`, { source: named });
}

/**
 * What was read at a path, or below it, by whichever links either is named. Of a file that is gone and that was seen elsewhere,
 * too, the other place has what is kept: to forget a folder says nothing of what was moved out of it.
 */
async function readBelow(path: string, table: SourceTable): Promise<readonly Source[]> {
  const { isAtOrBelow, realBeginning } = await import('@tapedeck/runtime/internal');
  const real = realBeginning(path);
  const isBelow = (one: Source) => isAtOrBelow(path, one.path) || isAtOrBelow(real, realBeginning(one.path));
  const below = table.all.filter(isBelow);
  const gone = new Set(below.filter((one) => one.path !== path && !existsSync(one.path)));
  if (gone.size === 0) return below;
  const inside = new Set(below);
  const elsewhere = new Set(table.all.filter((one) => !inside.has(one) && existsSync(one.path)).map(idOf));
  const isMoved = (one: Source) => gone.has(one) && elsewhere.has(idOf(one));
  return below.filter((one) => !isMoved(one));
}

/** Some sources, and the other files that are known of their conversations. */
function withOthers(origins: readonly (Origin | Source)[], table: SourceTable): readonly Source[] {
  const given = origins.filter((one) => 'path' in one);
  const meant = new Set(origins.map(idOf));
  const known = table.all.filter((one) => meant.has(idOf(one)));
  // What lies at a path now comes after what was read there.
  return [...new Map([...known, ...given].map((one) => [one.path, one])).values()];
}

/**
 * The conversation of a session, by its name here or by the tool's id of it, whatever is left of its files. Of one that its name
 * here names, it has the id, too.
 */
function sessionNamed(store: HomeStore, named: string): (Origin & { readonly id?: string }) | undefined {
  const own = store.sessions.find(named);
  const origin = own && originIn(store, own.id);
  if (own !== undefined && origin !== undefined) return { ...origin, id: own.id };
  for (const { id } of store.sessions.list({ all: true, allRealms: true })) {
    const one = originIn(store, id);
    if (one?.main === named) return one;
  }
  return leftIn(store).find(({ session, origin }) => origin.main === named || session === named)?.origin;
}

/** What can be said of the transcripts at a path, or below it, as they are now. Names the files that cannot be read. */
async function sourcesIn(
  path: string,
  table: SourceTable,
  { io, status }: Pick<Context, 'io' | 'status'>,
): Promise<readonly Source[]> {
  const { discover, transcriptTools } = await import('@tapedeck/runtime/import');
  const place = { env: io.env, home: userHome(io) };
  const known = (one: string) => table.at(one);
  const { files, problems } = await discover({ place, tools: transcriptTools, paths: [path], known });
  const without = (file: string) =>
    table.at(file) === undefined
      ? 'nothing of it is forgotten'
      : 'so what copies have of its new part is not known, and stays';
  sayLeftOut(
    problems.map((one) => ({ file: one.path, why: `${one.why}; ${without(one.path)}` })),
    status,
  );
  const { openFile, stateOf } = await import('@tapedeck/runtime/internal');
  return await Promise.all(
    files.map(async (file) => {
      const read = table.at(file.path);
      if (read !== undefined && isSame(read, { tool: file.tool.name, main: file.main })) return read;
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
