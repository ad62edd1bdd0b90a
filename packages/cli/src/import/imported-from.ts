import type { HomeStore } from '@tapedeck/tape';
import { importOriginIn, isObject } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { lastPlaced } from '../session/recorded-directory.ts';
import { knownSources } from './known-sources.ts';

/** Where an imported session comes from, and where it worked last, as fields of JSON. */
interface ImportedFrom {
  readonly tool: string;
  /** The tool's own id of it. */
  readonly session: string;
  /** The transcripts that have it, as the last import found them. */
  readonly files: readonly string[];
  readonly dir?: string;
  readonly branch?: string;
  readonly version?: string;
}

/** Where a session was imported from; undefined for one that was not. */
export async function importedFrom(
  store: HomeStore,
  id: string,
  { home }: Pick<Context, 'home'>,
): Promise<ImportedFrom | undefined> {
  const { origin } = importOriginIn(store, id) ?? {};
  if (origin === undefined) return undefined;
  const [tool, session] = [String(origin.format), String(origin.session)];
  const table = await knownSources(home);
  const there = table
    .of({ tool, session, path: '' })
    .filter(({ goneAt, forgottenAt }) => goneAt === undefined && forgottenAt === undefined);
  const { place, version } = lastPlaced(store, id) ?? {};
  const { cwd, git } = isObject(place) ? place : {};
  const branch = isObject(git) ? git.branch : undefined;
  return {
    ...{ tool, session, files: there.map(({ path }) => path) },
    ...(typeof cwd === 'string' && { dir: cwd }),
    ...(typeof branch === 'string' && { branch }),
    ...(typeof version === 'string' && { version }),
  };
}

/** The same as a person reads it, a row for each field. Pure. */
export function importedRows(imported: ImportedFrom | undefined): Readonly<Record<string, unknown>> {
  if (imported === undefined) return {};
  const { tool, session, files, ...place } = imported;
  return { imported: `${tool} ${session}`, ...(files.length > 0 && { files }), ...place };
}
