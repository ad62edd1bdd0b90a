import { createReadStream } from 'node:fs';
import type { HomeStore } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import type { Adopted, AdoptProgress, BundleSource } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { commandLine } from '../escape.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
import type { ImportChoices } from './transcript.ts';

/** Enough bytes to see whether a file is a bundle. */
const headBytes = 64 * 1024;

/** The beginning of what is imported, and all of it. */
export interface Importing {
  readonly head: Uint8Array;
  readonly source: BundleSource;
  /** All bytes, the beginning included. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Reads the beginning of a stream, which can still be read as a whole. */
export async function beginningOf(name: string, stream: AsyncIterable<Uint8Array>): Promise<Importing> {
  const reading = stream[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let size = 0;
  while (size < headBytes) {
    const { done, value } = await reading.next();
    if (done === true) break;
    first.push(value);
    size += value.byteLength;
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    yield* first;
    for (;;) {
      const { done, value } = await reading.next();
      if (done === true) return;
      yield value;
    }
  }
  const chunks = all();
  return { head: Buffer.concat(first), source: { name, chunks }, chunks };
}

/** Reads the beginning of a file. */
export async function headOf(path: string): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of createReadStream(path, { end: headBytes - 1 })) chunks.push(chunk as Buffer);
  } catch (cause) {
    const { cannotRead, reasonOf } = await import('@tapedeck/runtime/internal');
    throw cannotRead(path, reasonOf(cause), cause);
  }
  return Buffer.concat(chunks);
}

/** Takes a bundle in, and prints what it brought. */
export async function importBundle(
  source: BundleSource,
  { as, raw }: ImportChoices,
  context: Context,
): Promise<void> {
  const { writing, answer, status, inHome } = context;
  if (raw === true)
    throw new UsageError('cannot import a bundle with --raw: it has what its export put there', {
      hint: 'export it with --raw, and import it again: what was left out is added',
    });
  await writing(async (store) => {
    const adopted = await withProgress(context, (progress) => {
      const parts = {
        bytes: progress('Reading bytes'),
        entries: progress('Adding entries'),
        verified: progress('Verifying entries'),
      };
      const onProgress = ({ of, ...now }: AdoptProgress) => parts[of](now);
      return store.bundles.adopt(source, { ...(as !== undefined && { as }), onProgress });
    });
    const { session, sessions, entries, filled, absent, aliasesTaken } = adopted;
    const gone = goneOf(store, adopted);
    const kept = keptOf(adopted, gone);
    await answer({
      json: {
        session,
        sessions: sessions.length,
        entries,
        filled,
        absent,
        names: sessions.map((one) => one.session),
        became: Object.fromEntries(sessions.map((one) => [one.session, one.became])),
        aliases_taken: aliasesTaken,
        redacted_elsewhere: kept,
      },
      quiet: session,
      human: inHome(textOf(adopted, gone)),
    });
    if (absent > 0)
      status(`the content of ${counted(absent, 'entry', 'entries')} is not here: a later bundle can add it`);
    for (const alias of aliasesTaken) status(`the other name ${alias} is taken here, and was left out`);
    const named = `${kept.slice(0, entriesNamedMax).join(', ')}${kept.length > entriesNamedMax ? ', …' : ''}`;
    if (kept.length > 0)
      status(
        `redacted elsewhere, and still here: ${named}; erase each with: tape redact SESSION@SEQ${gone.size > 0 ? ', or a whole session with: tape purge SESSION' : ''}`,
      );
  });
}

/** A session that was deleted or purged where the bundle comes from, and so is here. */
interface Gone {
  readonly id: string;
  readonly lifecycle: string;
}

function goneOf(store: HomeStore, { sessions }: Adopted): ReadonlyMap<string, Gone> {
  const infos = sessions.flatMap(({ id }) => store.sessions.find(id) ?? []).filter(isDeleted);
  return new Map(infos.map(({ id, lifecycle }) => [id, { id, lifecycle }]));
}

/** The most entries that a line names. */
const entriesNamedMax = 10;

/** The entries that were redacted elsewhere, and have their content here. A deleted session is named by its id. */
function keptOf(
  { sessions, redactedElsewhere }: Adopted,
  gone: ReadonlyMap<string, Gone>,
): readonly string[] {
  const ids = new Map(sessions.flatMap(({ session, id }) => (gone.has(id) ? [[session, id] as const] : [])));
  return redactedElsewhere.map(({ session, seq }) => `${ids.get(session) ?? session}@${seq}`);
}

/** The most sessions that a line names. */
const namedMax = 3;

function textOf(
  { session, id, sessions, entries, lines, filled }: Adopted,
  gone: ReadonlyMap<string, Gone>,
): string {
  if (entries === 0 && lines === 0 && filled === 0) return nothingNewText(session, gone.get(id));
  const more = filled === 0 ? '' : `, and the content of ${counted(filled, 'entry', 'entries')}`;
  const of = sessions.filter(({ became }) => became !== 'same' && became !== 'kept');
  const named = of.length <= 1 ? '' : ` in ${counted(of.length, 'session')}`;
  const made = of.filter(({ became }) => became === 'new' || became === 'copy');
  // What is deleted is in no list already.
  const listed = made.filter((one) => !gone.has(one.id));
  const undo = listed.map((one) => commandLine('archive', [one.session])).join('; ');
  const isAll = made.length === of.length && made.length <= namedMax && listed.length > 0;
  const back = isAll ? ` (undo with: ${undo})` : '';
  return `Imported ${session}: ${counted(entries, 'entry', 'entries')}${named}${more}${goneText(gone.get(id))}${back}`;
}

/** Says why a bundle brought nothing. A session that was deleted here, or purged, is in no list. */
function nothingNewText(session: string, gone: Gone | undefined): string {
  if (gone === undefined) return `${session} is here already: nothing to do`;
  return gone.lifecycle === 'purged'
    ? `${session} was purged here, and stays so: nothing was imported`
    : `${session} was deleted here: nothing was imported (bring it back with: ${commandLine('undo', [gone.id])})`;
}

/** What became of a session that was deleted where it comes from. */
function goneText(gone: Gone | undefined): string {
  if (gone === undefined) return '';
  return gone.lifecycle === 'purged'
    ? '; it was purged there'
    : `; it was deleted there, and is here (bring it back with: ${commandLine('undo', [gone.id])})`;
}
