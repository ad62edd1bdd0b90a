import type { HomeStore } from '@tapedeck/tape';
import { quote } from '@tapedeck/tape/internal';
import type { OnProgress } from '@tapedeck/tape/store';
import type { FoundFile } from '../discovery/index.ts';
import { foreseen } from '../import/foreseen.ts';
import type { ReconcileOptions } from '../import/reconcile.ts';
import { Reconciling } from '../import/reconciling.ts';
import { ChangedMeanwhile, lookedAt } from '../import/unless-changed.ts';
import { type Cleaner, cleanerFor } from '../imported/cleaner.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import { ImportError } from '../lines/errors.ts';
import type { ConversationPlan } from '../plan/plan.ts';
import type { SourceTable } from '../sources/index.ts';
import { continueConversation } from './continue-conversation.ts';
import type { Conversation } from './conversations.ts';
import { type FileError, type FileImport, importOf, isFileError } from './file-import.ts';
import { heldFiles, recordHeld } from './held-files.ts';
import { asItWas, lackingOf } from './lacking.ts';
import { besideOther } from './left-agents.ts';
import { markSessionsBack } from './mark-gone.ts';
import { assertNotForgotten } from './not-forgotten.ts';
import { closeAll, isOther, isReadTool, type Opened, open, planOf } from './opened.ts';
import type { FileReading } from './read-file.ts';
import { readingOf } from './reading-progress.ts';
import { isRead, record, rememberEnd } from './record-read.ts';

/** How a conversation is imported. */
export interface ImportingOptions extends Omit<ReconcileOptions, 'rewritten' | 'clean' | 'onConcluded'> {
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
  /** Writes nothing: reads the files, and says which of them, and of their sessions, would be left out. */
  readonly dryRun?: boolean;
  /** The time that is recorded, in milliseconds since 1970. */
  readonly now?: () => number;
  /** Called with the bytes of its files that were read, some times while they are. */
  readonly onRead?: OnProgress;
}

/**
 * Imports what is new in the files of a conversation, and records what was read of them once the tapes have it. Reads all of
 * them if one has changed. A file that cannot be read keeps no other from it, unless it is the main one: without that, the
 * others have no place.
 * @throws TypeError for a tool whose transcripts are only recognised
 */
export async function importConversation(
  store: HomeStore,
  { tool, session, files }: Conversation,
  options: ImportingOptions = {},
): Promise<readonly FileImport[]> {
  const {
    table,
    again,
    excludes,
    strict = false,
    dryRun = false,
    now = Date.now,
    clean = cleanerFor(),
    onRead,
    ...how
  } = options;
  if (table !== undefined) knownSessionsIn(store).keepIn(table.sessionsFile);
  table?.dropUnlessIn(store);
  if (!isReadTool(tool)) throw new TypeError(`transcripts of ${tool.title} are not read`);
  // The table says nothing of a session that gets a name of its own.
  const mayGoOn = table !== undefined && again !== true && how.as === undefined;
  const asTheyWere = mayGoOn ? files.flatMap((file) => asItWas(store, file, table) ?? []) : [];
  if (mayGoOn && asTheyWere.length === files.length) return asTheyWere;
  const held = mayGoOn ? await heldFiles(files, table) : undefined;
  if (mayGoOn && held !== undefined) {
    if (!dryRun) recordHeld(table, held, now());
    return held.map(({ file, held: one }) => ({ file, seen: one?.as ?? 'unchanged' }));
  }
  const continued =
    mayGoOn && !dryRun
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
    const plan = await planOf(tool, opened);
    for (const { reading } of opened) {
      reading.assertWhole();
      if (excludes !== undefined) assertIncluded(reading, excludes);
    }
    if (dryRun) {
      const done = foreseen(store, plan, how);
      return together(opened, failed, (one) => importOf(one, plan, { done, concluded: 0 }));
    }
    const apart = new Set(
      opened.filter(({ seen }) => isOther(seen)).flatMap(({ file }) => plan.files.get(file.path) ?? []),
    );
    const rewritten = (conversation: ConversationPlan) => apart.has(conversation.file);
    let concluded = 0;
    const onConcluded = () => {
      concluded += 1;
    };
    const reconciling = new Reconciling(store, plan, {
      ...{ ...how, rewritten, onConcluded },
      ...(clean && { clean }),
    });
    let done = reconciling.since(look);
    while (done === undefined) done = reconciling.since(await lookAtForgotten());
    markSessionsBack(store, done);
    const lacking = done.filter(({ refused }) => refused !== undefined);
    // What was deleted stays so; any other reason may be gone soon.
    if (table !== undefined && lacking.every(({ refused }) => refused?.code === 'TAPE_ARCHIVED')) {
      const keys = new Set(done.filter((one) => one.isBehind === true).map((one) => one.conversation));
      const behind = new Set(plan.conversations.filter(({ key }) => keys.has(key)).map(({ file }) => file));
      const isBehind = ({ path }: FoundFile) => behind.has(plan.files.get(path) ?? '');
      await record(store, table, opened, { at: now(), isBehind, lacks: lackingOf(plan, done) });
      if (lacking.length === 0) await rememberEnd(store, plan, { tool, done, opened, table });
    }
    const isHere = table !== undefined && how.as === undefined;
    const others = isHere ? besideOther(store, { tool, session, files }, { done, table }) : [];
    if (others.length > 0) {
      const { onRead: _, ...again } = options;
      const all = { tool, session, files: [...files, ...others] };
      await importConversation(store, all, { ...again, again: true });
    }
    return together(opened, failed, (one) => importOf(one, plan, { done, concluded }));
  } catch (error) {
    if (!isFileError(error)) throw error;
    const [whose = files[0]] = files.filter(({ path }) => path === error.data.file);
    return files.map((file) => ({
      ...{ file, seen: opened.find((one) => one.file === file)?.seen.as ?? 'new' },
      // A pattern leaves out all of a session.
      ...((file === whose || error.code === 'IMPORT_EXCLUDED') && { error }),
    }));
  } finally {
    closeAll(opened);
  }
}

/** What became of the files that were read, and of those that could not be. */
function together(
  opened: readonly Opened[],
  failed: ReadonlyMap<FoundFile, FileError>,
  became: (one: Opened) => FileImport,
): readonly FileImport[] {
  return [
    ...opened.map(became),
    ...[...failed].map(([file, error]): FileImport => ({ file, seen: 'new', error })),
  ];
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
    if (!isFileError(error) && !(error instanceof ChangedMeanwhile)) throw error;
    return undefined;
  }
}
