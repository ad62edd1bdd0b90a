import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Draft, note, type SessionInfo, type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import { isBundle, redactedDraft, redactorFor } from '@tapedeck/tape/internal';
import { assertDraft, nameFault } from '@tapedeck/tape/store';
import { redactIn } from '../config/redact.ts';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { readAll, stdinWord } from '../input.ts';
import type { Io } from '../io.ts';
import { counted } from '../output/counted.ts';
import { type ShowProgress, withProgress } from '../output/progress.ts';
import { beginningOf, headOf, importBundle } from '../session/import-bundle.ts';
import { withKeptTails } from '../session/kept-tails.ts';
import { defineVerb, type Verb } from './verb.ts';

export const importVerb: Verb = defineVerb({
  command: 'import <file>',
  group: 'Start',
  summary: 'Import a transcript of another agent, or a bundle',
  detail:
    'A bundle, which tape export wrote, is verified as a whole before anything of it is visible. Its sessions keep their ids and hashes, and are foreign data: ' +
    'nothing that was approved elsewhere is approved here. Importing it again adds nothing; a bundle that has grown adds what is new; one whose session went on in another way here is refused, or ' +
    'taken alongside with --as. A transcript of Claude Code becomes one session: the path from its last message back to the first. Records off that path ' +
    'become entries that views skip. A saved session of NEXUS3 or a session.jsonl becomes one, too; what they permit counts for nothing here. Importing a file that has grown appends the new records.',
  examples: [
    ['tape import main.tape.zst', 'Import a bundle'],
    ['tape import ~/.claude/projects/app/2f1c.jsonl --as main', 'Import a transcript as session main'],
  ],
  arguments: { file: 'Bundle, also compressed, or transcript (-: stdin)' },
  options: {
    as: {
      type: 'string',
      describe: 'Name of the session (default: that of the bundle, or the id in the transcript)',
    },
    format: {
      type: 'string',
      default: 'auto',
      choices: ['auto', 'claude-code', 'nexus3', 'session-jsonl', 'bundle'],
      describe: 'Format of the file',
    },
    raw: { type: 'boolean', describe: 'Keep what has the form of a secret' },
  },
  run: async ({ file, as, format, raw }, context) => {
    const { io, home, writing, answer, status } = context;
    const isStdin = file === stdinWord;
    const { path, isPipe } = isStdin ? { path: 'stdin', isPipe: true } : await existingFile(file, io);
    // What a pipe has given is gone from it: it is read once.
    const piped = isPipe ? await beginningOf(path, isStdin ? io.stdin : createReadStream(path)) : undefined;
    const isOne =
      format === 'bundle' || (format === 'auto' && (await isBundle(piped?.head ?? (await headOf(path)))));
    if (isOne) return await importBundle(piped?.source ?? path, { as, raw }, context);
    const { readTranscript } = await import('@tapedeck/runtime/import');
    const keeps = raw === true ? false : ((await redactIn({ io, home })) ?? true);
    const redactor = redactorFor(typeof keeps === 'object' ? { ...keeps, in: 'all' } : keeps && 'all');
    const transcript = readTranscript(path, {
      format: format as 'auto' | 'claude-code' | 'nexus3' | 'session-jsonl',
      ...(piped !== undefined && { chunks: [await readAll(piped.chunks)] }),
    });
    const name = as ?? transcript.session;
    const fault = nameFault(name);
    if (fault !== undefined)
      throw new UsageError(`cannot import '${isStdin ? 'stdin' : file}' as '${name}': ${fault}`, {
        hint: 'choose a name with: --as NAME',
      });
    for (const draft of transcript.drafts) assertDraft(draft);
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
      const back = isNew ? context.inHome(`; undo with: tape archive ${info.session}`) : '';
      const late = answeredLate(store, info.session, drafts);
      if (late > 0)
        status(
          `${counted(late, 'call')} had no result at the first import and got the answer "interrupted": views keep that answer`,
        );
      const { repaired, offPath, compactions, records } = transcript.counts;
      await answer({
        json: {
          sessions: 1,
          entries: added,
          repaired,
          derived: 0,
          names: [info.session],
          counts: snakeCase(transcript.counts),
        },
        quiet: info.session,
        human:
          added === 0
            ? `${info.session} has all records already: nothing to do`
            : `Imported ${info.session}: ${counted(added, 'entry', 'entries')} from ${counted(records, 'record')} (${offPath} off the path, ${counted(compactions, 'compaction')}, ${counted(repaired, 'call')} without a result${back})`,
      });
      return 0;
    };
    return await writing(act, raw === true ? { redact: false } : {});
  },
});

/**
 * The path of a file that the user named, and whether it is a pipe, such as `<(…)` of a shell.
 * @throws NotFoundError, and UsageError for a directory
 */
async function existingFile(
  file: string,
  { cwd }: Pick<Io, 'cwd'>,
): Promise<{ readonly path: string; readonly isPipe: boolean }> {
  const path = resolve(cwd, file);
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) throw new NotFoundError(`cannot import '${file}': no such file`, { file });
  if (found.isDirectory())
    throw new UsageError(`cannot import '${file}': it is a directory`, { hint: 'name one transcript in it' });
  return { path, isPipe: found.isFIFO() };
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
          data: { session: name },
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
