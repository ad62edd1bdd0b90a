import type { HomeStore } from '@tapedeck/tape';
import { copiesIn } from '../copies/copies.ts';
import type { FoundFile } from '../discovery/index.ts';
import { placeRunsOf } from '../edges/cleared.ts';
import { bothOf, type FoundInFile, foundBefore } from '../formats/found-in-file.ts';
import { leftTape, reconcileEnd } from '../import/reconcile-end.ts';
import { nothing, type Reconciled } from '../import/reconciled.ts';
import { lookedAt, unlessChanged } from '../import/unless-changed.ts';
import type { Cleaner } from '../imported/cleaner.ts';
import { sessionWithId } from '../imported/of-realm.ts';
import { idsHave, numbersOf, type OpenFile, openFile, stateBefore } from '../lines/index.ts';
import type { RecordList } from '../lines/json-lines.ts';
import type { EndPlan, KnownEnd, TranscriptTool } from '../plan/format.ts';
import { formatError } from '../plan/format-error.ts';
import type { OpenEnd } from '../plan/open-end.ts';
import { newestIn, recognise, type Source, type SourceEnd, type SourceTable } from '../sources/index.ts';
import type { Conversation } from './conversations.ts';
import type { Brought } from './file-import.ts';
import { endPlanFault } from './plan-fault.ts';
import { FileReading } from './read-file.ts';
import { isOwn } from './tools.ts';

/** What the end of a file brought, and what was found in all of it. */
export interface Continued {
  readonly file: FoundFile;
  readonly brought: Brought;
}

/** A smaller file is read whole as fast. */
const bytesMin = 256 * 1024;

/**
 * Imports what a main file has got since its last import, and reads nothing else of it than its open end. Undefined where
 * other files have changed, too, where the file did not just grow, or where a record is no plain continuation: the
 * conversation is then read as a whole.
 * @throws ChangedMeanwhile where something was erased since it began, or another session begins as it does by now
 */
export async function continueConversation(
  store: HomeStore,
  { tool, files: [file, ...others] }: Pick<Conversation, 'tool' | 'files'>,
  {
    table,
    isRead,
    clean,
    strict,
    excludes,
    at,
  }: {
    readonly table: SourceTable;
    readonly isRead: (file: FoundFile) => boolean;
    readonly clean: Cleaner | undefined;
    readonly strict: boolean;
    /** Whether a pattern leaves out the sessions of a working directory. */
    readonly excludes: ((directory: string) => boolean) | undefined;
    readonly at: number;
  },
): Promise<Continued | undefined> {
  if (file?.role !== 'main' || tool.planEnd === undefined || !others.every(isRead)) return undefined;
  const source = table.at(file.path);
  // Of one that was gone, all sessions are marked; one that was deleted may be back.
  if (source === undefined || source.goneAt !== undefined || source.lacks !== undefined) return undefined;
  const known = table.ends.of(source);
  // What another realm has is a session of its own here.
  if (known === undefined || sessionWithId(store, known.tape.session) === undefined) return undefined;
  const seen = await recognise(file.path, { here: source, elsewhere: [] });
  if (seen.as !== 'grown') return undefined;
  const handle = openFile(file.path);
  try {
    const look = lookedAt(store);
    const reading = new FileReading(file, handle, { strict, from: known.from });
    const { records } = await reading.lines();
    const planned = endOf(tool, file.path, records, {
      ...{ ...known, has: idsHave(known.ids) },
      hasErased: () => !copiesNow(store).erased().isEmpty,
    });
    reading.assertWhole();
    const directories = new Set([...known.directories, ...reading.directories]);
    if (excludes !== undefined && [...directories].some(excludes)) return undefined;
    if (planned === undefined) return undefined;
    const copies = copiesNow(store);
    if (copies.erased().mayHave(planned.conversation)) return undefined;
    // Those that begin as it does may have what its source has got, and have counted it.
    const isAlone = () => copiesNow(store).resembling(known.tape.session).size < 2;
    if (!isAlone()) return undefined;
    const concerns = { erased: () => true, written: () => !isAlone() };
    const wrote = unlessChanged(store, { since: look, concerns }, () =>
      reconcileEnd(store, known.tape, planned.conversation, clean),
    );
    if (wrote === undefined) return undefined;
    copies.wrote(known.tape.session);
    let derived = 0;
    // What its runs cleared may have come first.
    placeRunsOf(store, known.tape.session, () => {
      derived += 1;
    });
    copies.end();
    const now: Source = { ...source, ...(await reading.read()), at };
    table.put([now], newestIn(store));
    const { session, key, name, ids, others: beside } = known;
    const found = bothOf(known.before, reading.found({ counts: planned.counts, faults: [] }));
    const others = beside.flatMap(({ conversation, id }): Reconciled[] => {
      const info = store.sessions.find(id);
      return info === undefined ? [] : [{ conversation, session: info.session, ...nothing }];
    });
    saveEnd(
      store,
      { tool, table, source: now, handle, open: planned.end, records },
      { session, key, name, wrote, directories: [...directories], ids, found, others },
    );
    // What follows in a line concludes nothing else.
    return { file, brought: { sessions: [wrote, ...others], derived, ...found } };
  } finally {
    handle.close();
  }
}

/** What is known of all sessions, by now. */
function copiesNow(store: HomeStore) {
  const copies = copiesIn(store);
  copies.begin();
  return copies;
}

/** @throws IMPORT_FORMAT_FAILED */
function endOf(
  tool: Pick<TranscriptTool, 'name' | 'planEnd'>,
  file: string,
  records: RecordList,
  known: KnownEnd,
): EndPlan | undefined {
  try {
    const plan = tool.planEnd?.(records, known);
    const why = plan === undefined || isOwn(tool) ? undefined : endPlanFault(plan);
    if (why !== undefined) throw new TypeError(why);
    return plan;
  } catch (cause) {
    throw formatError(cause, { tool, file });
  }
}

/** Records where a source can be read on, if it can be, and is large. */
export function saveEnd(
  store: HomeStore,
  {
    tool,
    table,
    source,
    handle,
    open,
    records,
  }: {
    readonly tool: Pick<TranscriptTool, 'name' | 'planEnd'>;
    readonly table: SourceTable;
    readonly source: Source;
    readonly handle: OpenFile;
    readonly open: OpenEnd | undefined;
    /** Those that were read, among them all from the open end on. */
    readonly records: RecordList;
  },
  {
    wrote,
    found,
    others,
    ids = new Uint32Array(0),
    ...about
  }: Pick<SourceEnd, 'session' | 'key' | 'name' | 'directories'> & {
    readonly wrote: Reconciled;
    /** What was found in all of the file. */
    readonly found: FoundInFile;
    /** The other sessions of the file. */
    readonly others: readonly Reconciled[];
    /** The ids before those of the open end. */
    readonly ids?: Uint32Array;
  },
): void {
  const isLarge = source.size >= bytesMin && source.compression === undefined;
  const tape = open === undefined || !isLarge ? undefined : leftTape(store, wrote.session, open.keys);
  const said =
    open &&
    tape &&
    unlessItFails(() => ({
      before: foundBeforeEnd(tool, { file: source.path, found, records, open, about }),
      ids: numbersOf(open.ids(), ids),
    }));
  if (open === undefined || tape === undefined || said?.before === undefined) {
    if (isLarge) table.ends.put(source, undefined);
    return;
  }
  const { line, offset, state } = open;
  const from = stateBefore(handle, source.read, { line, offset });
  const beside = others.flatMap(({ conversation, session }) => {
    const id = store.sessions.find(session)?.id;
    return id === undefined ? [] : [{ conversation, id }];
  });
  const { before } = said;
  table.ends.put(source, { from, ...about, state, tape, ids: said.ids, before, others: beside });
}

/** What a format says of an end. The tape has the file by then: where the format fails, the next import reads all of it. */
function unlessItFails<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}

/** What was found before the open end of a file; undefined where what is behind it would not be read from there on. */
function foundBeforeEnd(
  tool: Pick<TranscriptTool, 'name' | 'planEnd'>,
  {
    file,
    found,
    records,
    open: { line, state },
    about: { session, key, name },
  }: {
    readonly file: string;
    readonly found: FoundInFile;
    readonly records: RecordList;
    readonly open: OpenEnd;
    readonly about: Pick<SourceEnd, 'session' | 'key' | 'name'>;
  },
): FoundInFile | undefined {
  const rest = [...records.values().filter((record) => record.line >= line)];
  const nothingElse = { has: () => false, hasErased: () => false };
  const counts = endOf(tool, file, rest, { ...{ session, key, name, state }, ...nothingElse })?.counts;
  return counts && foundBefore(found, { line, records: rest, counts });
}
