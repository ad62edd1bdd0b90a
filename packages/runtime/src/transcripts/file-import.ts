import { TapeError } from '@tapedeck/tape';
import type { FoundFile } from '../discovery/index.ts';
import type { FoundInFile } from '../formats/found-in-file.ts';
import type { Reconciled } from '../import/reconciled.ts';
import { ImportError } from '../lines/errors.ts';
import type { SourcePlan } from '../plan/format.ts';
import { noCounts } from '../plan/transcript.ts';
import type { Seen } from '../sources/index.ts';
import type { Opened } from './opened.ts';

/** What the import of one file brought. */
export interface FileImport {
  readonly file: FoundFile;
  /** What the file was to what had been read before. */
  readonly seen: Seen['as'];
  /** What became of its conversations; absent when nothing had to be read, and for what is a part of another file. */
  readonly brought?: Brought;
  /** Its sessions, of which one that was deleted here takes nothing, where nothing had to be read. */
  readonly lacking?: readonly Reconciled[];
  /** Why it was left out, or a part of it. */
  readonly error?: ImportError | TapeError;
}

/** What one file brought, and what was found in all of it, also where its end alone was read. */
export interface Brought extends FoundInFile {
  /** Those of its conversations, also of such to which nothing was added. */
  readonly sessions: readonly Reconciled[];
  /** Edges that no record names, which this import concluded: those of all files of a conversation are with its main one. */
  readonly derived: number;
}

/** What was read of an open file, and what became of that. Pure. */
export function importOf(
  { file, seen, reading }: Opened,
  plan: SourcePlan,
  { done, concluded }: { readonly done: readonly Reconciled[]; readonly concluded: number },
): FileImport {
  const key = plan.files.get(file.path);
  const keys = new Set(plan.conversations.filter((one) => one.file === key).map((one) => one.key));
  const sessions = done.filter(({ conversation }) => keys.has(conversation));
  const error = reading.error ?? sessions.find(({ refused }) => refused !== undefined)?.refused;
  const said = { file, seen: seen.as, ...(error !== undefined && { error }) };
  if (key === undefined) return said;
  const counts = plan.counts.get(key) ?? noCounts;
  const derived = file.role === 'main' ? concluded : 0;
  const faults = plan.faults?.get(key) ?? [];
  return { ...said, brought: { sessions, derived, ...reading.found({ counts, faults }) } };
}

/** What can be wrong with one file, and with no other. */
export type FileError = ImportError | TapeError;

/** What a tape says of an entry, a name, a session or a place in it: other errors are those of the home. */
const ofSource: ReadonlySet<string> = new Set([
  'TAPE_BAD_ENTRY',
  'TAPE_BAD_NAME',
  'TAPE_BAD_POINT',
  'TAPE_CONFLICT',
  'TAPE_EXISTS',
  'TAPE_KEY_CONFLICT',
  'TAPE_NO_ANCHOR',
  'TAPE_NO_SEQ',
  'TAPE_NO_SESSION',
]);

export function isFileError(error: unknown): error is FileError {
  if (error instanceof ImportError) return error.code !== 'IMPORT_CANNOT_WRITE';
  return error instanceof TapeError && ofSource.has(error.code);
}
