/**
 * Takes in transcripts and bundles. `found.ts` takes what is found on this machine or in folders, and `found-answer.ts` prints
 * what that is. `named-files.ts` takes the files that the user named, each a transcript (`transcript.ts`) or a bundle
 * (`bundle.ts`), `dry-run.ts` says what either would take, and `last.ts` how the transcripts stand with the tapes. What a file
 * is, how far it was read and what becomes of its records, the runtime knows. Imports `session`, `config` and what lies below.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { Conversation, Discovery, FileImport, Problem, SourceTable } from '@tapedeck/runtime/import';
import type { HomeStore } from '@tapedeck/tape';
import { homeConfigFile } from '../config/find.ts';
import { redactIn } from '../config/redact.ts';
import { readSearched, userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { pathText, safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { hasDatabase } from '../home.ts';
import { counted } from '../output/counted.ts';
import { toolsText } from '../output/found.ts';
import { withProgress } from '../output/progress.ts';
import { agrees, canAsk } from '../question.ts';
import { bytesOf, forgottenSource, foundByTool, type Pending, parted } from './conversations.ts';
import { readingIfThere } from './dry-run.ts';
import { sayDone, sayFound } from './found-answer.ts';
import { dropUnlessHere, knownSources, tapesAreOlder } from './known-sources.ts';
import { namedPaths } from './named-path.ts';

/** What of the transcripts on this machine to import. */
export interface Wanted {
  /** Files and folders; without any, the folders of all tools and of the configuration. */
  readonly paths: readonly string[];
  readonly tool?: string | undefined;
  readonly project?: string | undefined;
  readonly since?: number | undefined;
  readonly raw?: boolean | undefined;
  readonly strict?: boolean | undefined;
  readonly yes?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
}

/** Finds transcripts, imports what is new in them, and prints a line per tool. Returns 1 if some were left out. */
export async function importFound(wanted: Wanted, context: Context): Promise<number> {
  const { io, home, options } = context;
  const { conversationsIn, markSessionsGone } = await import('@tapedeck/runtime/import');
  const { isGone } = await import('@tapedeck/runtime/internal');
  const table = await knownSources(home);
  if (await dropUnlessHere(table, context)) context.status(`${tapesAreOlder}: all are read again`);
  const found = await find(wanted, table, context);
  const [forgotten, kept] = parted(conversationsIn(found.files), ({ tool, session }) =>
    table.isForgotten({ tool: tool.name, main: session }),
  );
  const conversations = await pendingOf(kept, table, context);
  const tools = foundByTool(conversations);
  const isFirst = table.all.every(({ at }) => at === 0);
  const isNamed = wanted.paths.length > 0;
  if (tools.length === 0 && !isNamed) sayPlaces(found.places, wanted, context);
  const narrowed = { by: narrowingIn(wanted).join(' and '), files: isNamed ? found.narrowed : [] };
  if (wanted.dryRun === true)
    return await sayFound({ found, tools, conversations, forgotten, narrowed, isNamed }, context);
  if (isFirst && tools.some((tool) => tool.isRead)) {
    const isAsked = wanted.yes !== true && canAsk(context);
    if (options.json !== true && options.jsonl !== true && options.quiet !== true)
      io.err(safe(`${toolsText(tools, { isTerminal: io.statusIsTerminal, columns: io.columns })}\n`));
    if (isAsked && !(await agrees(`Import them into ${pathText(home.name)}?`, context))) {
      context.status('Nothing was imported');
      return exit.done;
    }
  }
  const { done, refused, left } = await importAll(conversations, { wanted, found, table, context });
  // Their tapes say so: the table was lost, or the tapes came from elsewhere.
  table.put(refused.flatMap(({ files }) => files.map((file) => forgottenSource(file, io.now()))));
  if (existsSync(home.dir)) table.noteIgnored(found.ignored);
  const seen = new Set(found.files.map(({ path }) => path));
  const isThere = (path: string) => seen.has(path) || !isGone(path);
  const isWhole = !isNamed && existsSync(home.dir);
  const gone = isWhole && hasDatabase(home) ? table.missing(isThere) : [];
  const marked =
    gone.length === 0
      ? []
      : await context.writing(async (store) => markSessionsGone(store, gone, table, io.now()));
  if (isWhole && left === 0) table.searched(io.now());
  const all = [...forgotten, ...refused];
  const finding = { found, tools, forgotten: all, narrowed, isNamed };
  const code = await sayDone({ ...finding, done, gone, marked }, context);
  if (left === 0) return code;
  context.status(`Interrupted before ${counted(left, 'file')}; go on with: tape import`);
  return exit.interrupted;
}

/** Conversations with what is known of their files. Opens the home only if a deleted session took nothing of one. */
async function pendingOf(
  conversations: readonly Conversation[],
  table: SourceTable,
  context: Context,
): Promise<readonly Pending[]> {
  const { asItWas, isRead } = await import('@tapedeck/runtime/import');
  const lacking = conversations.flatMap(({ files }) =>
    files.filter(({ path }) => table.at(path)?.lacks !== undefined),
  );
  const lookAt = async (store: HomeStore) =>
    new Map(lacking.flatMap((file) => asItWas(store, file, table) ?? []).map((one) => [one.file, one]));
  const known = lacking.length === 0 ? new Map() : await readingIfThere(lookAt, context);
  return conversations.map((one) => ({
    ...one,
    toRead: one.files.filter((file) => !isRead(file, table) && !known.has(file)),
    known: one.files.flatMap((file) => known.get(file) ?? []),
  }));
}

/** What an import did, and the conversations that it did not take since they were forgotten. */
interface Done {
  readonly done: readonly FileImport[];
  readonly refused: readonly Pending[];
  /** How many files it did not come to, since it was interrupted. */
  readonly left: number;
}

/** Imports what is new, until Ctrl-C, behind which it ends with the conversation that it is at. Opens the home only if there is something. */
async function importAll(
  conversations: readonly Pending[],
  {
    wanted: { raw, strict },
    found: { excludesProject: excludes },
    table,
    context,
  }: {
    readonly wanted: Wanted;
    readonly found: Discovery;
    readonly table: SourceTable;
    readonly context: Context;
  },
): Promise<Done> {
  const { io, home, writing } = context;
  const { cleanerFor, importConversation, knownFirst, Origins } = await import('@tapedeck/runtime/import');
  const readable = conversations.filter(({ tool }) => tool.plan !== undefined);
  const changed = readable.filter(({ toRead }) => toRead.length > 0);
  if (changed.length === 0) return { done: readable.flatMap(unchanged), refused: [], left: 0 };
  const clean = raw === true ? false : cleanerFor((await redactIn({ io, home })) ?? true);
  // Each transcript is garbage when it is on its tape.
  io.saveMemory(10);
  // From here on Ctrl-C ends the process the second time alone.
  const { signal } = io;
  const act = async (store: HomeStore) =>
    await withProgress(context, async (progress) => {
      const show = progress('Importing bytes');
      const total = changed.reduce((sum, { files }) => sum + bytesOf(files), 0);
      const origins = new Origins(store);
      const done = new Map<Pending, readonly FileImport[]>();
      const refused: Pending[] = [];
      let bytes = 0;
      let left = 0;
      for (const conversation of knownFirst(readable, { table, store })) {
        if (signal.aborted) {
          left += conversation.toRead.length;
          continue;
        }
        if (conversation.toRead.length === 0) {
          done.set(conversation, unchanged(conversation));
          continue;
        }
        const how = { table, origins, strict: strict === true, excludes, now: () => io.now() };
        const brought = await importConversation(store, conversation, { ...how, clean: clean ?? false });
        if (brought.some(({ error }) => error?.code === 'IMPORT_FORGOTTEN')) refused.push(conversation);
        else done.set(conversation, brought);
        bytes += bytesOf(conversation.files);
        show({ done: bytes, total });
        // A signal is handled between two turns of the event loop, which an import alone does not leave.
        await setImmediate();
      }
      return { done: readable.flatMap((one) => done.get(one) ?? []), refused, left };
    });
  return await writing(act, raw === true ? { redact: false } : {});
}

function unchanged({ files, known }: Pending): readonly FileImport[] {
  const of = new Map(known.map((one) => [one.file, one]));
  return files.map((file) => of.get(file) ?? { file, seen: 'unchanged' });
}

/** What a search found, and the directories in which it looked for what is read. */
interface Found extends Discovery {
  readonly places: readonly string[];
}

/** Says where nothing was found: the transcripts may lie elsewhere. */
function sayPlaces(places: readonly string[], wanted: Wanted, { status }: Context): void {
  const named = narrowingIn(wanted);
  const alone =
    named.length === 0
      ? ''
      : `, for what ${named.join(' and ')} ${named.length === 1 ? 'names' : 'name'} alone`;
  if (places.length === 0) return;
  const where = places.map(pathText).join(', ');
  status(
    `Looked in ${where}${alone}; name another place with: tape import PATH, or import.roots in config.yaml`,
  );
}

/** The options that narrow an import. */
function narrowingIn(wanted: Wanted): readonly string[] {
  const all = ['tool', 'project', 'since'] as const;
  return all.filter((one) => wanted[one] !== undefined).map((one) => `--${one}`);
}

async function find(wanted: Wanted, table: SourceTable, context: Context): Promise<Found> {
  const { io, home } = context;
  const { discover, transcriptTools } = await import('@tapedeck/runtime/import');
  const { roots, exclude } = await readSearched(context);
  const { paths, bundles, missing } = await namedPaths(wanted.paths, io);
  const place = { env: io.env, home: userHome(io) };
  const found = await discover({
    place,
    tools: transcriptTools,
    known: (path) => table.at(path),
    ...{ roots, exclude, ignored: table.ignored },
    // Of bundles alone none is a transcript, and nothing else is named.
    ...(wanted.paths.length > 0 && { paths }),
    ...(wanted.tool !== undefined && { tool: wanted.tool }),
    ...(wanted.project !== undefined && { project: resolve(io.cwd, wanted.project) }),
    ...(wanted.since !== undefined && { since: wanted.since }),
  });
  // The user has typed these paths elsewhere, and long ago perhaps.
  const from = `import.roots of ${homeConfigFile(home)}`;
  const placed = (one: Problem) => {
    if (one.leadsOut === true)
      return { ...one, why: `${one.why}; if you made it, name it with tape import PATH, or in import.roots` };
    return roots.includes(one.path) ? { ...one, why: `${one.why} (${from})` } : one;
  };
  const read = transcriptTools.filter(
    ({ name, plan }) => plan !== undefined && (wanted.tool === undefined || wanted.tool === name),
  );
  const places = [...read.flatMap((tool) => tool.roots(place)), ...roots];
  return { ...found, places, problems: [...missing, ...bundles, ...found.problems.map(placed)] };
}
