import {
  claudeCode,
  conversationsIn,
  type Discovery,
  discover,
  type FileImport,
  type ImportingOptions,
  importConversation,
  knownFirst,
  type TranscriptTool,
} from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';

/** How files are imported in a test. */
export interface ImportingFiles extends ImportingOptions {
  readonly tool?: TranscriptTool;
}

/** What an import of files found, and what became of it. */
export interface FilesImported {
  readonly found: Discovery;
  readonly done: readonly FileImport[];
  /** The sessions, each once. */
  readonly names: readonly string[];
}

/** Imports the transcripts at or below some paths, as `tape import PATH…` does it. */
export async function importFiles(
  store: SqliteTapeStore,
  paths: readonly string[],
  { tool = claudeCode, table, ...how }: ImportingFiles = {},
): Promise<FilesImported> {
  const known = table && { known: (path: string) => table.at(path) };
  const found = await discover({ place: { env: {}, home: '/' }, tools: [tool], paths, ...known });
  const done: FileImport[] = [];
  for (const conversation of knownFirst(conversationsIn(found.files), { store, ...(table && { table }) }))
    done.push(...(await importConversation(store, conversation, { ...(table && { table }), ...how })));
  const sessions = done.flatMap(({ brought }) => brought?.sessions ?? []);
  return { found, done, names: [...new Set(sessions.map(({ session }) => session))] };
}
