import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Discovery, FoundFile, Source, SourceTable } from '@tapedeck/runtime/internal';
import { readSearched, userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { describeError } from '../errors/describe.ts';
import { NotFoundError } from '../errors/kinds.ts';
import { jsonText, safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import { foundJson, foundText, importedText } from '../output/found.ts';
import { type Conversation, conversationsIn, foundByTool, type ToolFound } from './conversations.ts';
import { type FileImport, importSource } from './import-source.ts';
import { canAsk } from './meant.ts';

/** What of the transcripts on this machine to import. */
export interface Wanted {
  /** Files and folders; without any, the folders of all tools and of the configuration. */
  readonly paths: readonly string[];
  readonly tool?: string | undefined;
  readonly project?: string | undefined;
  readonly since?: number | undefined;
  readonly raw?: boolean | undefined;
  readonly yes?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
}

/** Finds transcripts, imports what is new in them, and prints a line per tool. Returns 1 if some were left out. */
export async function importFound(wanted: Wanted, context: Context): Promise<number> {
  const { io, home, options } = context;
  const { SourceTable, factsAt, isUnchanged } = await import('@tapedeck/runtime/internal');
  const table = SourceTable.open(join(home.dir, 'sources.jsonl'));
  const found = await find(wanted, table, context);
  const isRead = ({ path, facts }: FoundFile) => {
    const source = table.at(path);
    return source !== undefined && source.goneAt === undefined && isUnchanged(source, facts);
  };
  const conversations = conversationsIn(found.files, isRead).filter(
    ({ tool, session }) => !table.isForgotten({ tool, main: session }),
  );
  const tools = foundByTool(conversations);
  const isFirst = table.all.length === 0;
  if (wanted.dryRun === true) return await sayFound({ found, tools, conversations }, context);
  if (isFirst && tools.some((tool) => tool.isRead)) {
    const isAsked = wanted.yes !== true && canAsk(context);
    if (options.json !== true && options.jsonl !== true && options.quiet !== true)
      io.err(safe(`${foundText(tools, found)}\n`));
    if (isAsked && !(await agrees(context))) {
      context.status('Nothing was imported');
      return exit.done;
    }
  }
  // Each transcript is garbage when it is on its tape.
  io.saveMemory();
  const done: FileImport[] = [];
  for (const conversation of conversations) {
    if (conversation.files.some(({ tool }) => !tool.isRead)) continue;
    done.push(...(await importSource(conversation, { table, raw: wanted.raw, context })));
  }
  const searchedAll = wanted.paths.length === 0;
  const gone =
    searchedAll && existsSync(home.dir) ? table.markGone((path) => factsAt(path) !== undefined, io.now()) : [];
  return await sayDone({ found, tools, done, gone, isNamed: !searchedAll }, context);
}

async function find(wanted: Wanted, table: SourceTable, context: Context): Promise<Discovery> {
  const { io } = context;
  const { discover, transcriptTools } = await import('@tapedeck/runtime/internal');
  const { roots, exclude } = await readSearched(context);
  const paths = wanted.paths.map((path) => resolve(io.cwd, path));
  for (const [i, path] of paths.entries())
    if (!existsSync(path)) {
      const file = wanted.paths[i] ?? path;
      throw new NotFoundError(`cannot import '${file}': no such file or directory`, { file });
    }
  return await discover({
    place: { env: io.env, home: userHome(io) },
    tools: transcriptTools,
    known: (path) => table.at(path),
    ...{ roots, exclude },
    ...(paths.length > 0 && { paths }),
    ...(wanted.tool !== undefined && { tool: wanted.tool }),
    ...(wanted.project !== undefined && { project: resolve(io.cwd, wanted.project) }),
    ...(wanted.since !== undefined && { since: wanted.since }),
  });
}

/** Asks once on stderr. The end of the input is a no. */
async function agrees({ io }: Context): Promise<boolean> {
  io.err('Import them? [y/N] ');
  for await (const bytes of io.stdin) return /^y(?:es)?\s*$/i.test(Buffer.from(bytes).toString('utf8'));
  io.err('\n');
  return false;
}

/** Prints what an import would take. */
async function sayFound(
  {
    found,
    tools,
    conversations,
  }: {
    readonly found: Discovery;
    readonly tools: readonly ToolFound[];
    readonly conversations: readonly Conversation[];
  },
  { io, options }: Context,
): Promise<number> {
  const files = conversations.flatMap(({ files: all, toRead }) =>
    all.map((file) => ({ ...fileJson(file), new: file.tool.isRead && toRead.includes(file) })),
  );
  if (options.jsonl === true) for (const file of files) await io.out(`${jsonText(file)}\n`);
  else if (options.json === true)
    await io.out(`${jsonText({ dry_run: true, ...foundJson(tools, found), files })}\n`);
  else if (options.quiet === true)
    for (const { file, new: isNew } of files) await io.out(isNew ? `${safe(file)}\n` : '');
  else await io.out(`${safe(foundText(tools, found))}\n`);
  return exit.done;
}

/** Everything that an import did. */
interface Done {
  readonly found: Discovery;
  readonly tools: readonly ToolFound[];
  readonly done: readonly FileImport[];
  readonly gone: readonly Source[];
  /** Whether the user named the files: then one of a tool that is not read was left out. */
  readonly isNamed: boolean;
}

async function sayDone({ found, tools, done, gone, isNamed }: Done, context: Context): Promise<number> {
  const { io, options, answer, status } = context;
  const files = done.map(importJson);
  const problems = found.problems.map(({ path, why }) => ({ file: path, why }));
  const unread = isNamed
    ? [
        ...found.files.filter(({ tool }) => !tool.isRead).map(({ path, tool }) => ({
          file: path,
          why: `${tool.file}: recognised, not yet read`,
        })),
        ...found.strangers.map(({ path, like }) => ({
          file: path,
          why: like === undefined ? 'the records are of no tool that is known' : `looks like ${like}: not known`,
        })),
      ]
    : [];
  const failed = done.flatMap(({ file, error }) =>
    error === undefined ? [] : [{ file: file.path, why: describeError(error).message }],
  );
  const leftOut = [...failed, ...problems, ...unread];
  const json = {
    ...totals(done),
    ...foundJson(tools, found),
    ...{ files, left_out: leftOut, gone: gone.map(({ path }) => path) },
  };
  if (options.jsonl === true) for (const file of files) await io.out(`${jsonText(file)}\n`);
  else await answer({ json, quiet: json.names.join('\n'), human: importedText(tools, done) });
  for (const { file, why } of leftOut.slice(0, shownMax)) status(`Left out ${file}: ${why}`);
  if (leftOut.length > shownMax) status(`… and ${counted(leftOut.length - shownMax, 'other file')}`);
  if (gone.length > 0)
    status(`${counted(gone.length, 'file')} of earlier imports ${gone.length === 1 ? 'is' : 'are'} gone; the sessions stay`);
  return leftOut.length > 0 ? exit.failed : exit.done;
}

/** How many files are named on stderr. */
const shownMax = 20;

function fileJson({ path, tool, session, role, project, facts }: FoundFile) {
  const named = { file: path, tool: tool.name, session, role, ...(project !== undefined && { project }) };
  return { ...named, bytes: facts.size };
}

function importJson({ file, seen, receipt, error }: FileImport) {
  const { names, entries = 0, counts, bad_lines } = receipt ?? {};
  const brought = receipt === undefined ? {} : { names, counts, bad_lines };
  const said = error === undefined ? undefined : describeError(error);
  return {
    ...fileJson(file),
    ...{ seen, entries, ...brought },
    ...(said !== undefined && { error: { code: said.code, message: said.message } }),
  };
}

/** What an import of a single file has in its receipt, as sums over all. */
function totals(done: readonly FileImport[]) {
  const receipts = done.map(({ receipt = {} }) => receipt);
  const sum = (field: string) => receipts.reduce((total, { [field]: n }) => total + Number(n ?? 0), 0);
  const names = receipts.flatMap(({ names }) => (Array.isArray(names) ? names.map(String) : []));
  const [sessions, entries, repaired, derived] = ['sessions', 'entries', 'repaired', 'derived'].map(sum);
  return { sessions, entries, repaired, derived, names: [...new Set(names)] };
}
