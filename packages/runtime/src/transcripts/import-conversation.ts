import { type HomeStore, TapeError } from '@tapedeck/tape';
import { quote } from '@tapedeck/tape/internal';
import type { OnProgress } from '@tapedeck/tape/store';
import type { FoundFile } from '../discovery/index.ts';
import type { FoundInFile } from '../formats/found-in-file.ts';
import type { ReconcileOptions } from '../import/reconcile.ts';
import type { Reconciled } from '../import/reconciled.ts';
import { Reconciling } from '../import/reconciling.ts';
import { ErasedMeanwhile, lookedAt } from '../import/unless-erased.ts';
import { type Cleaner, cleanerFor } from '../imported/cleaner.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import { ImportError } from '../lines/errors.ts';
import { factsAt, type OpenFile, openFile } from '../lines/index.ts';
import type { SourcePlan, TranscriptTool } from '../plan/format.ts';
import type { ConversationPlan } from '../plan/plan.ts';
import { noCounts } from '../plan/transcript.ts';
import { isUnchanged, recognise, type Seen, type Source, type SourceTable } from '../sources/index.ts';
import { continueConversation, saveEnd } from './continue-conversation.ts';
import type { Conversation } from './conversations.ts';
import { heldFiles, recordHeld } from './held-files.ts';
import { markSessionsBack } from './mark-gone.ts';
import { assertNotForgotten } from './not-forgotten.ts';
import { FileReading } from './read-file.ts';

/** What the import of one file brought. */
export interface FileImport {
  readonly file: FoundFile;
  /** What the file was to what had been read before. */
  readonly seen: Seen['as'];
  /** What became of its conversations; absent when nothing had to be read, and for what is a part of another file. */
  readonly brought?: Brought;
  /** Why it was left out, or a part of it. */
  readonly error?: ImportError | TapeError;
}

/** What one file brought, and what was found in all of it, also where its end alone was read. */
export interface Brought extends FoundInFile {
  /** Those of its conversations, also of such to which nothing was added. */
  readonly sessions: readonly Reconciled[];
}

/** How a conversation is imported. */
export interface ImportingOptions extends Omit<ReconcileOptions, 'rewritten' | 'clean'> {
  /** Replaces what has the form of a secret, as {@link cleanerFor} does by default; false keeps it. */
  readonly clean?: Cleaner | false;
  /** What is known of files: an unchanged one is not read, and what was read is recorded. */
  readonly table?: SourceTable;
  /** Reads the files even if none of them has changed. */
  readonly again?: boolean;
  /** Whether the sessions of a working directory are left out: one that was there for a while is, as a whole. */
  readonly excludes?: (directory: string) => boolean;
  /** Refuses a file at its first bad line. */
  readonly strict?: boolean;
  /** The time that is recorded, in milliseconds since 1970. */
  readonly now?: () => number;
  /** Called with the bytes of its files that were read, some times while they are. */
  readonly onRead?: OnProgress;
}

/** Whether a file is as it was when it was read, and each of its sessions took what is new. */
export function isRead(file: FoundFile, table: SourceTable | undefined): boolean {
  const source = table?.at(file.path);
  return source !== undefined && source.lacks !== true && isRecorded(file, source);
}

/** Whether the table has of a file what it is now. */
function isRecorded({ facts }: FoundFile, source: Source): boolean {
  return source.goneAt === undefined && isUnchanged(source, facts);
}

/**
 * Imports what is new in the files of a conversation, and records what was read of them once the tapes have it. Reads all of
 * them if one has changed. A file that cannot be read keeps no other from it, unless it is the main one: without that, the
 * others have no place.
 * @throws TypeError for a tool whose transcripts are only recognised
 */
export async function importConversation(
  store: HomeStore,
  { tool, files }: Conversation,
  options: ImportingOptions = {},
): Promise<readonly FileImport[]> {
  const {
    table,
    again,
    excludes,
    strict = false,
    now = Date.now,
    clean = cleanerFor(),
    onRead,
    ...how
  } = options;
  if (table !== undefined) knownSessionsIn(store).keepIn(table.sessionsFile);
  if (tool.plan === undefined) throw new TypeError(`transcripts of ${tool.title} are not read`);
  if (again !== true && files.every((file) => isRead(file, table)))
    return files.map((file) => ({ file, seen: 'unchanged' }));
  const mayGoOn = table !== undefined && again !== true && how.as === undefined;
  const held = mayGoOn ? await heldFiles(files, table) : undefined;
  if (mayGoOn && held !== undefined) {
    recordHeld(table, held, now());
    return held.map(({ file, held: one }) => ({ file, seen: one?.as ?? 'unchanged' }));
  }
  const continued = mayGoOn
    ? await grown(
        store,
        { tool, files },
        {
          ...{ table, strict, excludes, at: now() },
          clean: clean === false ? undefined : clean,
        },
      )
    : undefined;
  if (continued !== undefined) return continued;
  const shown = onRead && readingOf(files, onRead);
  const opened: Opened[] = [];
  const failed = new Map<FoundFile, FileError>();
  const lookAtForgotten = async () => {
    const look = lookedAt(store);
    if (table !== undefined && how.as === undefined) await assertNotForgotten(store, files, table);
    return look;
  };
  try {
    const look = await lookAtForgotten();
    for (const file of files) {
      try {
        opened.push(await open(file, { table, strict, ...(shown !== undefined && { onRead: shown(file) }) }));
      } catch (error) {
        if (file.role === 'main' || !isFileError(error)) throw error;
        failed.set(file, error);
      }
    }
    const plan = await planOf(tool.plan, opened);
    for (const { reading } of opened) {
      reading.assertWhole();
      if (excludes !== undefined) assertIncluded(reading, excludes);
    }
    const apart = new Set(
      opened.filter(({ seen }) => isOther(seen)).flatMap(({ file }) => plan.files.get(file.path) ?? []),
    );
    const rewritten = (conversation: ConversationPlan) => apart.has(conversation.file);
    const reconciling = new Reconciling(store, plan, { ...how, rewritten, ...(clean && { clean }) });
    let done = reconciling.since(look);
    while (done === undefined) done = reconciling.since(await lookAtForgotten());
    markSessionsBack(store, done);
    const lacking = done.filter(({ refused }) => refused !== undefined);
    // What was deleted stays so; any other reason may be gone soon.
    if (table !== undefined && lacking.every(({ refused }) => refused?.code === 'TAPE_ARCHIVED')) {
      const filesOf = (some: readonly Reconciled[]) => {
        const keys = new Set(some.map(({ conversation }) => conversation));
        const names = new Set(plan.conversations.filter(({ key }) => keys.has(key)).map(({ file }) => file));
        return ({ path }: FoundFile) => names.has(plan.files.get(path) ?? '');
      };
      const isBehind = filesOf(done.filter((one) => one.isBehind === true));
      await record(table, opened, { at: now(), isBehind, lacks: filesOf(lacking) });
      if (lacking.length === 0) await rememberEnd(store, plan, { tool, done, opened, table });
    }
    const brought = opened.map((one) => importOf(one, plan, done));
    return [...brought, ...[...failed].map(([file, error]) => ({ file, seen: 'new', error }) as const)];
  } catch (error) {
    if (!isFileError(error)) throw error;
    const [whose = files[0]] = files.filter(({ path }) => path === error.data.file);
    return files.map((file) => ({
      ...{ file, seen: opened.find((one) => one.file === file)?.seen.as ?? 'new' },
      ...(file === whose && { error }),
    }));
  } finally {
    for (const { handle } of opened) handle.close();
  }
}

/** @throws IMPORT_EXCLUDED */
function assertIncluded({ path, directories }: FileReading, excludes: (directory: string) => boolean): void {
  const directory = [...directories].find((one) => one !== '' && excludes(one));
  if (directory === undefined) return;
  const why = `its session was in ${quote(directory)}, which a pattern leaves out`;
  throw new ImportError('IMPORT_EXCLUDED', `cannot import ${quote(path)}: ${why}`, {
    data: { file: path, directory, why },
  });
}

/** What the end of a file that has grown brought; undefined where all of its conversation has to be read. */
async function grown(
  store: HomeStore,
  { tool, files }: Pick<Conversation, 'tool' | 'files'>,
  how: Pick<Parameters<typeof continueConversation>[2], 'table' | 'strict' | 'clean' | 'excludes' | 'at'>,
): Promise<readonly FileImport[] | undefined> {
  try {
    const isKnown = (file: FoundFile) => isRead(file, how.table);
    const one = await continueConversation(store, { tool, files }, { ...how, isRead: isKnown });
    if (one === undefined) return undefined;
    const { file: main, brought } = one;
    return files.map((file) =>
      file === main ? { file, seen: 'grown', brought } : { file, seen: 'unchanged' },
    );
  } catch (error) {
    // Whatever is wrong with the file, its whole reading says it, and begins anew where something was erased meanwhile.
    if (!isFileError(error) && !(error instanceof ErasedMeanwhile)) throw error;
    return undefined;
  }
}

/** Records where the main file can be read on when it has grown. */
async function rememberEnd(
  store: HomeStore,
  plan: SourcePlan,
  {
    tool,
    done,
    opened,
    table,
  }: {
    readonly tool: TranscriptTool;
    readonly done: readonly Reconciled[];
    readonly opened: readonly Opened[];
    readonly table: SourceTable;
  },
): Promise<void> {
  const { end, session, copyOf, isNamed, conversations } = plan;
  const main = opened.find(({ file }) => file.role === 'main');
  const source = main && table.at(main.file.path);
  const wrote = done.find(({ conversation }) => conversation === end?.conversation);
  const grows = conversations.find(({ key }) => key === end?.conversation);
  if (main === undefined || source === undefined || wrote === undefined || grows === undefined) return;
  const open = copyOf === undefined && isNamed === undefined ? end : undefined;
  const { brought } = importOf(main, plan, done);
  if (brought === undefined) return;
  const { sessions, ...found } = brought;
  const { key, name } = grows;
  const directories = [...main.reading.directories];
  const others = sessions.filter((one) => one !== wrote);
  const { records } = await main.reading.lines();
  saveEnd(
    store,
    { tool, table, source, handle: main.handle, open, records },
    { session, key, name, directories, wrote, found, others },
  );
}

/** What can be wrong with one file, and with no other. */
type FileError = ImportError | TapeError;

/** What a tape says of an entry, a name or a source: other errors are those of the home. */
const ofSource: ReadonlySet<string> = new Set(['TAPE_BAD_ENTRY', 'TAPE_BAD_NAME', 'TAPE_EXISTS']);

function isFileError(error: unknown): error is FileError {
  if (error instanceof ImportError) return error.code !== 'IMPORT_CANNOT_WRITE';
  return error instanceof TapeError && ofSource.has(error.code);
}

/** A file that is open for this import. */
interface Opened {
  readonly file: FoundFile;
  readonly seen: Seen;
  readonly handle: OpenFile;
  readonly reading: FileReading;
}

async function open(
  file: FoundFile,
  {
    table,
    ...how
  }: { readonly table: SourceTable | undefined } & ConstructorParameters<typeof FileReading>[2],
): Promise<Opened> {
  const { path, tool, session } = file;
  const elsewhere = table?.of({ tool: tool.name, session, path }) ?? [];
  const seen = await recognise(path, { here: table?.at(path), elsewhere });
  const handle = openFile(path);
  return { file, seen, handle, reading: new FileReading(file, handle, how) };
}

/** The plan of files, without those that strictness leaves out. */
async function planOf(
  read: NonNullable<TranscriptTool['plan']>,
  opened: readonly Opened[],
): Promise<SourcePlan> {
  const readings = opened.map(({ reading }) => reading);
  const plan = await read(readings);
  const left = readings.filter(({ error }) => error === undefined);
  for (const reading of left)
    reading.assertRegular(plan.faults?.get(plan.files.get(reading.path) ?? '') ?? []);
  return left.every(({ error }) => error === undefined) ? plan : await read(readings);
}

/** Less is read at once. */
const shownBytes = 256 * 1024;

/** For each file of several, what counts its bytes among those of all. */
function readingOf(
  files: readonly FoundFile[],
  onRead: OnProgress,
): (file: FoundFile) => (bytes: number) => void {
  const total = files.reduce((sum, { facts }) => sum + facts.size, 0);
  const read = new Map<FoundFile, number>();
  return (file) => (bytes) => {
    if (total < shownBytes) return;
    // A compressed file gives more bytes than it has.
    read.set(file, Math.min(bytes, file.facts.size));
    onRead({ done: [...read.values()].reduce((sum, one) => sum + one, 0), total });
  };
}

/** Whether a file lacks a part of what was read of its session: what it has in place of that goes beside it. */
function isOther(seen: Seen): boolean {
  const isOfShorter = 'source' in seen && seen.source.isBehind === true;
  return seen.as === 'rewritten' || seen.as === 'version' || isOfShorter;
}

type IsFile = (file: FoundFile) => boolean;

async function record(
  table: SourceTable,
  opened: readonly Opened[],
  { at, isBehind, lacks }: { readonly at: number; readonly isBehind: IsFile; readonly lacks: IsFile },
): Promise<void> {
  for (const { file, seen, reading } of opened) {
    const { path, tool, session, main, role, project, first } = file;
    const known = table.at(path);
    const isLacking = lacks(file);
    const isKnown = known !== undefined && isRecorded(file, known) && (known.lacks === true) === isLacking;
    if (reading.error !== undefined || isKnown) continue;
    const about = {
      ...(project !== undefined && { project }),
      ...(first !== undefined && { first }),
      ...(isBehind(file) && { isBehind: true as const }),
      ...(isLacking && { lacks: true as const }),
    };
    const read = await reading.read();
    table.put([{ path, ...read, at, tool: tool.name, session, main, role, ...about } satisfies Source]);
    // A file that has moved, or was compressed, is known by its new path alone.
    const before = seen.as === 'moved' || seen.as === 'compressed' ? seen.source.path : path;
    if (before !== path && factsAt(before) === undefined) table.remove(before);
  }
}

function importOf(
  { file, seen, reading }: Opened,
  plan: SourcePlan,
  done: readonly Reconciled[],
): FileImport {
  const key = plan.files.get(file.path);
  const keys = new Set(plan.conversations.filter((one) => one.file === key).map((one) => one.key));
  const sessions = done.filter(({ conversation }) => keys.has(conversation));
  const error = reading.error ?? sessions.find(({ refused }) => refused !== undefined)?.refused;
  const said = { file, seen: seen.as, ...(error !== undefined && { error }) };
  if (key === undefined) return said;
  const counts = plan.counts.get(key) ?? noCounts;
  const derived = file.role === 'main' ? plan.derived.length : 0;
  const faults = plan.faults?.get(key) ?? [];
  return { ...said, brought: { sessions, ...reading.found({ counts, derived, faults }) } };
}
