import type { FoundFile, Seen, SourceTable } from '@tapedeck/runtime/internal';
import { isObject } from '@tapedeck/tape/internal';
import type { Answer, Context } from '../context.ts';
import { type Conversation, sourceOf } from './conversations.ts';
import { importTranscript } from './import-transcript.ts';

/** What the import of one file brought. */
export interface FileImport {
  readonly file: FoundFile;
  /** What the file was to what had been read before. */
  readonly seen: Seen['as'];
  /** The receipt of its session; undefined when nothing had to be read, or when it failed. */
  readonly receipt?: Readonly<Record<string, unknown>>;
  readonly error?: unknown;
}

/** What importing a conversation needs. */
export interface Importing {
  readonly table: SourceTable;
  readonly raw: boolean | undefined;
  readonly context: Context;
}

/**
 * Imports what is new in the files of a conversation, and records what was read of them. A file that fails keeps no other
 * from it.
 */
export async function importSource(
  { files, toRead }: Conversation,
  importing: Importing,
): Promise<readonly FileImport[]> {
  const done: FileImport[] = [];
  for (const file of files) {
    if (file.role === 'part') continue;
    if (!toRead.includes(file)) done.push({ file, seen: 'unchanged' });
    else done.push(await importFile(file, importing));
  }
  return done;
}

async function importFile(file: FoundFile, { table, raw, context }: Importing): Promise<FileImport> {
  const { compressionIn, contentOf, factsAt, openFile, recognise, stateOf } = await import(
    '@tapedeck/runtime/internal'
  );
  const { path } = file;
  let seen: Seen = { as: 'new' };
  try {
    const about = { tool: file.tool.name, session: file.session, path };
    seen = await recognise(path, { here: table.at(path), elsewhere: table.of(about) });
    const open = openFile(path);
    try {
      const compression = compressionIn(open);
      const source = {
        ...{ path, named: path },
        chunks: compression === undefined ? undefined : contentOf(open),
      };
      const receipt = await receiptOf(source, { raw, context });
      const read = await stateOf(open);
      const at = context.io.now();
      const kept = { ...open.facts, ...(compression !== undefined && { compression }), read, at };
      table.put([sourceOf(file, kept)]);
      // A file that has moved, or was compressed, is known by its new path alone.
      const before = seen.as === 'moved' || seen.as === 'compressed' ? seen.source.path : path;
      if (before !== path && factsAt(before) === undefined) table.remove(before);
      return { file, seen: seen.as, receipt };
    } finally {
      open.close();
    }
  } catch (error) {
    if (context.io.interrupted) throw error;
    return { file, seen: seen.as, error };
  }
}

async function receiptOf(
  source: Parameters<typeof importTranscript>[0],
  { raw, context }: Pick<Importing, 'raw' | 'context'>,
): Promise<Readonly<Record<string, unknown>>> {
  let receipt: Readonly<Record<string, unknown>> = {};
  const answer = async ({ json }: Answer) => {
    if (isObject(json)) receipt = json;
  };
  // The summary has what the import of a single file would say.
  const quiet = { ...context, answer, status: () => {} };
  await importTranscript(source, { as: undefined, raw, format: 'auto' }, quiet);
  return receipt;
}
