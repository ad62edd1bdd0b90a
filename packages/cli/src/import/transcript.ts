import { statSync } from 'node:fs';
import type {
  BadLine,
  Brought,
  Conversation,
  FileImport,
  SourceTable,
  TranscriptFormat,
} from '@tapedeck/runtime/import';
import { type HomeStore, TapeError } from '@tapedeck/tape';
import { nameFault } from '@tapedeck/tape/store';
import { redactIn } from '../config/redact.ts';
import { readSearched, userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { pathText } from '../escape.ts';
import { exit } from '../exit.ts';
import { readAll } from '../input.ts';
import { counted } from '../output/counted.ts';
import { isLeftOut } from '../output/found.ts';
import { withProgress } from '../output/progress.ts';
import { type Foreseen, foreseeConversation, foreseeFile, readingIfThere } from './dry-run.ts';
import { tapesAreOlder } from './known-sources.ts';
import { leftOutBy, sayLeftOut } from './left-out.ts';
import { importNamed } from './named.ts';
import { notImported, notKnown, notYetRead } from './not-imported.ts';
import { bounded, pipedContent } from './piped-content.ts';
import { receiptOf, receiptOfKnown } from './receipt.ts';

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

/** How a transcript is imported. */
export interface TranscriptChoices extends ImportChoices {
  readonly format: 'auto' | TranscriptFormat;
  readonly strict: boolean | undefined;
  /** What is known of files; absent for a stream. */
  readonly table: SourceTable | undefined;
  /** Given for a dry run: takes what would be imported, and nothing is written or printed of that. */
  readonly foreseen: Foreseen | undefined;
}

/**
 * The content of a compressed file; undefined for a plain one, which is read in pieces.
 * @throws IMPORT_CANNOT_READ, IMPORT_TOO_LARGE
 */
async function decompressed({
  path,
  named,
}: Pick<Source, 'path' | 'named'>): Promise<Uint8Array | undefined> {
  const { compressionIn, contentOf, openFile } = await import('@tapedeck/runtime/internal');
  const file = openFile(path);
  try {
    if (compressionIn(file) === undefined) return undefined;
    return await readAll(bounded(contentOf(file), { named, as: 'decompressed' }));
  } finally {
    file.close();
  }
}

/** Imports a transcript of another agent, and prints what it brought. Returns 1 if a part of it was left out. */
export async function importTranscript(
  { path, named, chunks }: Source,
  { as, raw, strict, format, table, foreseen }: TranscriptChoices,
  context: Context,
): Promise<number> {
  const { io, home } = context;
  const fault = as === undefined ? undefined : nameFault(as);
  if (fault !== undefined) throw cannotName(as, { named, fault });
  const { cleanerFor, noCounts, readTranscript, reconcile, transcriptTools } = await import(
    '@tapedeck/runtime/import'
  );
  const clean = raw === true ? undefined : cleanerFor((await redactIn({ io, home })) ?? true);
  const how = { ...(as !== undefined && { as }), ...(clean !== undefined && { clean }) };
  const act = async (inStore: (store: HomeStore) => Promise<number>) =>
    foreseen === undefined
      ? await context.writing(inStore, raw === true ? { redact: false } : {})
      : await readingIfThere(inStore, context);
  const isWhole = chunks === undefined && (format === 'auto' || format === 'claude-code');
  const conversation = isWhole ? await conversationOf({ path, named, as, table }, context) : undefined;
  if (conversation !== undefined)
    return await act(async (store) => {
      // Each record is garbage when it is on its tape.
      io.saveMemory(10);
      if (table?.dropUnlessIn(store) === true)
        context.status(`${tapesAreOlder}: read all again with: tape import`);
      const isAsked = raw === true || strict === true;
      const { done, here } = await withProgress(context, (progress) =>
        importNamed(store, conversation, {
          ...{ ...how, clean: clean ?? false, again: isAsked, now: () => io.now() },
          ...(table !== undefined && { table }),
          ...{ strict: strict === true, excludes: conversation.excludes, dryRun: foreseen !== undefined },
          ...{ onRead: progress('Reading bytes'), onAdded: progress('Adding entries') },
        }),
      );
      const failed = done.filter(isLeftOut);
      const whose = failed.find(({ file }) => file.path === path);
      const { error } = whose ?? failed.find(({ file }) => file.role === 'main') ?? {};
      if (error !== undefined) throw error;
      const brought = done.flatMap((one) => one.brought ?? []);
      const leftOut = done.flatMap(leftOutBy);
      if (foreseen === undefined) await say(brought, { named, files: done, here, context });
      else {
        sayLinesOf(brought, named, context);
        foreseeConversation(foreseen, conversation, { done, as });
        foreseen.leftOut.push(...leftOut);
      }
      sayLeftOut(leftOut, context.status);
      return leftOut.length > 0 ? exit.failed : exit.done;
    });
  const content =
    chunks === undefined
      ? await decompressed({ path, named })
      : await pipedContent(chunks, { named, namesTool: format === 'auto' });
  const plan = await withProgress(context, (progress) =>
    readTranscript(path, {
      format,
      ...(content !== undefined && { chunks: [content] }),
      strict: strict === true,
      forms: transcriptTools,
      onProgress: progress('Reading bytes'),
    }),
  );
  const name = as ?? plan.session;
  const why = nameFault(name);
  if (why !== undefined) throw cannotName(name, { named, fault: why });
  return await act(async (store) => {
    let derived = 0;
    const onConcluded = () => {
      derived += 1;
    };
    const sessions =
      foreseen === undefined
        ? await withProgress(context, (progress) =>
            withFile(named, () =>
              reconcile(store, plan, { ...how, onConcluded, onAdded: progress('Adding entries') }),
            ),
          )
        : (await import('@tapedeck/runtime/internal')).foreseen(store, plan, how);
    const [refused] = sessions.flatMap((one) => one.refused ?? []);
    if (refused !== undefined) throw refused;
    const [counts = noCounts] = plan.counts.values();
    const { bad, irregular } = plan;
    const brought = { sessions, counts, derived, bad, irregular };
    if (foreseen === undefined) await say([brought], { named, context });
    else {
      sayLinesOf([brought], named, context);
      const { size = content?.byteLength ?? 0, mtimeMs = io.now() } =
        chunks === undefined ? statSync(path) : {};
      foreseeFile(foreseen, {
        ...{ file: path, format: plan.format, session: plan.session },
        ...{ bytes: size, at: Math.floor(mtimeMs) },
      });
    }
    return exit.done;
  });
}

/**
 * The conversation of which a file is part; undefined if no tool knows it.
 * @throws ImportError for a file that is to be left out, or that cannot be read
 */
async function conversationOf(
  { path, named, as, table }: Pick<Source, 'path' | 'named'> & Pick<TranscriptChoices, 'as' | 'table'>,
  context: Context,
): Promise<(Conversation & { readonly excludes: (directory: string) => boolean }) | undefined> {
  const { io } = context;
  const { conversationsIn, discover, transcriptTools } = await import('@tapedeck/runtime/import');
  const { exclude } = await readSearched(context);
  const found = await discover({
    ...{ place: { env: io.env, home: userHome(io) }, tools: transcriptTools, paths: [path], exclude },
    known: (one) => table?.at(one),
  });
  const file = { named, path };
  if (found.files.length === 0 && found.excluded > 0) {
    const why = 'a pattern of import.exclude or of a .tapeignore leaves it out';
    throw await notImported(file, 'IMPORT_EXCLUDED', why);
  }
  const conversation = conversationsIn(found.files).find(({ files }) =>
    files.some((file) => file.path === path),
  );
  if (conversation === undefined) {
    const isIt = (one: { readonly path: string }) => one.path === path;
    const like = found.strangers.find(isIt)?.like;
    if (like !== undefined) throw await notKnown(file, like);
    const error = found.problems.find(isIt)?.error;
    if (error?.code === 'IMPORT_CANNOT_READ') throw error;
    return undefined;
  }
  const { tool, session } = conversation;
  if (tool.plan === undefined) throw await notYetRead(file, tool);
  // A session with a name of its own is another one.
  if (as === undefined && table?.isForgotten({ tool: tool.name, main: session }) === true)
    throw await notImported(file, 'IMPORT_FORGOTTEN', 'its source was forgotten');
  return { ...conversation, excludes: found.excludesProject };
}

function cannotName(
  name: string | undefined,
  { named, fault }: { readonly named: string; readonly fault: string },
): UsageError {
  return new UsageError(`cannot import '${named}' as '${name}': ${fault}`, {
    hint: 'choose a name with: --as NAME',
  });
}

/** Names the file in an error of an entry that no tape can have. */
function withFile<T>(named: string, act: () => T): T {
  try {
    return act();
  } catch (cause) {
    if (!(cause instanceof TapeError) || cause.code !== 'TAPE_BAD_ENTRY') throw cause;
    throw new TapeError(cause.code, `cannot import '${named}': ${cause.message}`, {
      data: cause.data,
      cause,
    });
  }
}

async function say(
  brought: readonly Brought[],
  {
    named,
    files = [],
    here = [],
    context,
  }: {
    readonly named: string;
    readonly files?: readonly FileImport[];
    readonly here?: readonly string[];
    readonly context: Context;
  },
): Promise<void> {
  const { answer, inHome } = context;
  sayLinesOf(brought, named, context);
  const receipt = brought.length > 0 ? receiptOf(brought, files) : receiptOfKnown(here, files);
  await answer({ ...receipt, human: inHome(receipt.human) });
}

/** Names the lines of one file, as `sayLines` does. */
function sayLinesOf(
  brought: readonly Pick<Brought, 'bad' | 'irregular'>[],
  file: string,
  { status }: Pick<Context, 'status'>,
): void {
  sayLines(
    brought.map((one) => ({ ...one, file })),
    status,
  );
}

/** How many places a line names, and how many lines there are. */
const placesMax = 5;
const linesMax = 20;

/** Names the lines of files that were left out, without which a transcript is not whole, and those with something wrong. */
export function sayLines(
  found: readonly (Pick<Brought, 'bad' | 'irregular'> & { readonly file: string })[],
  status: (text: string) => void,
): void {
  const lines = found.flatMap(({ bad, irregular, file }) => [
    ...placesIn(bad, `Left out of ${pathText(file)}`),
    ...placesIn(irregular, `Irregular in ${pathText(file)}`),
  ]);
  for (const line of lines.slice(0, linesMax)) status(line);
  const more = lines.length - linesMax;
  if (more > 0) status(`… and ${counted(more, 'other such line')}; --json has all`);
}

/** A line for each thing that is wrong. */
function placesIn(lines: readonly BadLine[], what: string): readonly string[] {
  const byReason = Map.groupBy(lines, (one) => one.why);
  return [...byReason].map(([why, places]) => `${what}: ${placesOf(places)}: ${why}`);
}

function placesOf(lines: readonly BadLine[]): string {
  const places = lines.slice(0, placesMax).map(({ line, offset }) => `line ${line} (byte ${offset})`);
  return [...places, ...(lines.length > placesMax ? ['…'] : [])].join(', ');
}
