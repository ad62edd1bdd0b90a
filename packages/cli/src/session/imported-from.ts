import type { HomeStore } from '@tapedeck/tape';
import { importOriginIn, isObject } from '@tapedeck/tape/internal';
import { lastPlaced } from './recorded-directory.ts';

/** Where an imported session comes from, and where it worked last, as fields of JSON. */
interface ImportedFrom {
  readonly tool: string;
  /** The tool's own id of it. */
  readonly session: string;
  readonly dir?: string;
  readonly branch?: string;
  readonly version?: string;
}

/** Where a session was imported from, as its tape says; undefined for one that was not. */
export function importedFrom(store: HomeStore, id: string): ImportedFrom | undefined {
  const { origin } = importOriginIn(store, id) ?? {};
  if (origin === undefined) return undefined;
  const { place, version } = lastPlaced(store, id) ?? {};
  const { cwd, git } = isObject(place) ? place : {};
  const branch = isObject(git) ? git.branch : undefined;
  return {
    ...{ tool: String(origin.format), session: String(origin.session) },
    ...(typeof cwd === 'string' && { dir: cwd }),
    ...(typeof branch === 'string' && { branch }),
    ...(typeof version === 'string' && { version }),
  };
}

/** The same as a person reads it, a row for each field. Pure. */
export function importedRows(imported: ImportedFrom | undefined): Readonly<Record<string, string>> {
  if (imported === undefined) return {};
  const { tool, session, ...place } = imported;
  return { imported: `${tool} ${session}`, ...place };
}
