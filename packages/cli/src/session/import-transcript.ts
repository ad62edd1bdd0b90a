import { setTimeout as sleep } from 'node:timers/promises';
import type { Transcript, TranscriptFormat } from '@tapedeck/runtime/import';
import { type Draft, note, type SessionInfo, type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import { redactedDraft, redactorFor } from '@tapedeck/tape/internal';
import { assertDraft, nameFault } from '@tapedeck/tape/store';
import { redactIn } from '../config/redact.ts';
import type { Answer, Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { readAll } from '../input.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
import type { ShowProgress } from '../progress-line.ts';
import { withKeptTails } from './kept-tails.ts';

/** A transcript to import. */
export interface Source {
  /** The path, or a name of a stream. */
  readonly path: string;
  /** The file as the user named it. */
  readonly named: string;
  /** The bytes of what is no file. */
  readonly chunks: AsyncIterable<Uint8Array> | undefined;
}

/** How a file is imported. */
export interface ImportChoices {
  readonly as: string | undefined;
  readonly raw: boolean | undefined;
}

/** The most bytes of what is no file: it is kept in memory, since it is read more than once. */
const pipedBytesMax = 512 * 1024 * 1024;

async function* bounded(chunks: AsyncIterable<Uint8Array>, named: string): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.byteLength;
    if (size > pipedBytesMax) {
      const { ImportError } = await import('@tapedeck/runtime/import');
      throw new ImportError(
        'IMPORT_TOO_LARGE',
        `cannot import '${named}': the pipe gave over ${pipedBytesMax} bytes, and no bundle`,
        { data: { file: named } },
      );
    }
    yield chunk;
  }
}

/** Imports a transcript of another agent as one session, and prints what it brought. */
export async function importTranscript(
  { path, named, chunks }: Source,
  { as, raw, format }: ImportChoices & { readonly format: 'auto' | TranscriptFormat },
  context: Context,
): Promise<void> {
  const { io, home, writing, answer, status } = context;
  const { readTranscript } = await import('@tapedeck/runtime/import');
  const keeps = raw === true ? false : ((await redactIn({ io, home })) ?? true);
  const redactor = redactorFor(typeof keeps === 'object' ? { ...keeps, in: 'all' } : keeps && 'all');
  const bytes = chunks === undefined ? {} : { chunks: [await readAll(bounded(chunks, named))] };
  const transcript = await withProgress(context, (progress) =>
    readTranscript(path, { format, ...bytes, onProgress: progress('Reading bytes') }),
  );
  const name = as ?? transcript.session;
  const fault = nameFault(name);
  if (fault !== undefined)
    throw new UsageError(`cannot import '${named}' as '${name}': ${fault}`, {
      hint: 'choose a name with: --as NAME',
    });
  for (const draft of transcript.drafts) assertStorable(draft, named);
  // Before anything is compared with what an earlier import wrote.
  const clean = (draft: Draft) => (redactor === undefined ? draft : redactedDraft(draft, redactor));
  const act = async (store: SqliteTapeStore) => {
    const title = transcript.title && (redactor?.text(transcript.title) ?? transcript.title);
    const origin = note('import/source', { format: transcript.format, session: transcript.session });
    const drafts = [{ ...origin, key: 'import:source' }, ...transcript.drafts.map(clean)];
    const isNew = store.sessions.find(name) === undefined;
    const { info, added } = await withProgress(context, (progress) =>
      storeTranscript(store, {
        ...{ name, title, drafts },
        keeps: transcript.keeps ?? new Map(),
        progress: progress('Adding entries'),
      }),
    );
    const late = answeredLate(store, info.session, drafts);
    if (late > 0)
      status(
        `${counted(late, 'call')} had no result at the first import and got the answer "interrupted": views keep that answer`,
      );
    sayLeftOut(transcript, named, status);
    const back = isNew ? context.inHome(`; undo with: tape archive ${info.session}`) : '';
    await answer(receiptOf(transcript, { session: info.session, added, back }));
  };
  await writing(act, raw === true ? { redact: false } : {});
}

/**
 * Refuses an entry that no tape can have, and names the file.
 * @throws as `assertDraft`
 */
function assertStorable(draft: Draft, named: string): void {
  try {
    assertDraft(draft);
  } catch (cause) {
    if (!(cause instanceof TapeError)) throw cause;
    throw new TapeError(cause.code, `cannot import '${named}': ${cause.message}`, {
      data: cause.data,
      cause,
    });
  }
}

/** Names the lines that were left out: a transcript without them is not whole. */
function sayLeftOut({ bad = [] }: Transcript, named: string, status: (text: string) => void): void {
  if (bad.length === 0) return;
  const places = bad.slice(0, 5).map(({ line, offset }) => `line ${line} (byte ${offset})`);
  const more = bad.length > places.length ? ', …' : '';
  status(`left out of '${named}', since it is not JSON: ${places.join(', ')}${more}`);
}

function receiptOf(
  { counts, bad = [] }: Transcript,
  { session, added, back }: { readonly session: string; readonly added: number; readonly back: string },
): Answer {
  const { repaired, offPath, compactions, records } = counts;
  const json = { sessions: 1, entries: added, repaired, derived: 0, names: [session] };
  return {
    json: { ...json, counts: snakeCase(counts), bad_lines: bad },
    quiet: session,
    human:
      added === 0
        ? `${session} has all records already: nothing to do`
        : `Imported ${session}: ${counted(added, 'entry', 'entries')} from ${counted(records, 'record')} (${offPath} off the path, ${counted(compactions, 'compaction')}, ${counted(repaired, 'call')} without a result${back})`,
  };
}

function snakeCase(counts: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(counts).map(([name, count]) => [
      name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
      count,
    ]),
  );
}

interface Importing {
  readonly name: string;
  readonly title: string | undefined;
  readonly drafts: readonly Draft[];
  /** The first draft that each boundary keeps in view, by the keys of both. */
  readonly keeps: ReadonlyMap<string, string>;
  readonly progress: ShowProgress;
}

const chunkEntries = 500;

/**
 * Writes a new session in unpublished chunks and publishes it at once; appends new records to an existing
 * one.
 */
async function storeTranscript(
  store: SqliteTapeStore,
  importing: Importing,
): Promise<{ info: SessionInfo; added: number }> {
  const { name, drafts, keeps } = importing;
  const existing = store.sessions.find(name);
  if (existing !== undefined) {
    const [first] = drafts;
    const [source] = store.entries.read(name, { from: 2, to: 2, own: true });
    if (source?.name !== 'import/source' || JSON.stringify(source.payload) !== JSON.stringify(first?.payload))
      throw new TapeError(
        'TAPE_EXISTS',
        `cannot import into '${name}': it is not an import of this transcript`,
        {
          data: { session: name, transcript: true },
        },
      );
    assertGrown(store, name, drafts);
    const known = new Map<string, number>();
    for (const { key, seq } of store.entries.read(name, { own: true }))
      if (key?.startsWith('u:') === true) known.set(key.slice(2), seq);
    const placed = withKeptTails(drafts, keeps, { known, next: existing.head + 1 });
    const { added } = store.entries.append(name, placed);
    return { info: store.sessions.find(name) ?? existing, added };
  }
  try {
    // The first entry of a session is its `session/start`.
    const placed = withKeptTails(drafts, keeps, { known: new Map(), next: 2 });
    return await storeNew(store, { ...importing, drafts: placed });
  } catch (error) {
    // A concurrent import of the same file has published the session: append to it.
    const isPublished =
      error instanceof TapeError && (error.code === 'TAPE_NO_SESSION' || error.code === 'TAPE_EXISTS');
    if (!isPublished || store.sessions.find(name) === undefined) throw error;
    return await storeTranscript(store, importing);
  }
}

async function storeNew(
  store: SqliteTapeStore,
  { name, title, drafts, progress }: Omit<Importing, 'keeps'>,
): Promise<{ info: SessionInfo; added: number }> {
  const keys = drafts.flatMap(({ key }) => key ?? []);
  const staged = store.imports.stage(name, { keys, ...(title !== undefined && { title }) });
  for (let i = 0; i < drafts.length; i += chunkEntries) {
    // The pause lets other writers take the lock of the database.
    if (i > 0) await sleep(2);
    store.imports.append(staged.id, drafts.slice(i, i + chunkEntries));
    progress({ done: Math.min(i + chunkEntries, drafts.length), total: drafts.length });
  }
  const [info = staged] = store.imports.publish([staged.id]);
  return { info, added: info.head - 1 }; // All but the `session/start` that every session has.
}

/**
 * Refuses a transcript that lacks records of the earlier import. Such a transcript continued from an earlier
 * record; old and new records in one session would make a conversation that never happened.
 * @throws TAPE_CONFLICT
 */
function assertGrown(store: SqliteTapeStore, name: string, drafts: readonly Draft[]): void {
  const keys = new Set(drafts.map(({ key }) => `u:${key}`));
  for (const { key, seq } of store.entries.read(name, { own: true })) {
    // The import itself adds an "interrupted" answer to a call without a result; a later import has the real
    // one.
    if (key === undefined || !ofMessage.test(key) || key.endsWith(':interrupted') || keys.has(key)) continue;
    throw new TapeError(
      'TAPE_CONFLICT',
      `cannot import into '${name}': the transcript no longer has ${name}@${seq}`,
      {
        data: { session: name, seq },
      },
    );
  }
}

/** Keys of what a file that has grown still has: what Claude Code recorded, messages of NEXUS3, records. */
const ofMessage = /^u:(?:cc|nx|sj):/;

/** How many calls answered "interrupted" by an earlier import have a real result in the transcript now. */
function answeredLate(store: SqliteTapeStore, name: string, drafts: readonly Draft[]): number {
  const keys = new Set(drafts.map(({ key }) => `u:${key}`));
  let late = 0;
  for (const { key } of store.entries.read(name, { own: true, kind: 'tool-result' }))
    if (key?.endsWith(':interrupted') === true && !keys.has(key)) late += 1;
  return late;
}
