import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Discovery, FoundFile, SourceTable } from '@tapedeck/runtime/internal';
import { readSearched, userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { NotFoundError } from '../errors/kinds.ts';
import { safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { foundText } from '../output/found.ts';
import { agrees, canAsk } from '../question.ts';
import { conversationsIn, foundByTool } from './conversations.ts';
import { sayDone, sayFound } from './found-answer.ts';
import { type FileImport, importSource } from './import-source.ts';

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
  const isNamed = wanted.paths.length > 0;
  if (wanted.dryRun === true) return await sayFound({ found, tools, conversations, isNamed }, context);
  if (isFirst && tools.some((tool) => tool.isRead)) {
    const isAsked = wanted.yes !== true && canAsk(context);
    if (options.json !== true && options.jsonl !== true && options.quiet !== true)
      io.err(safe(`${foundText(tools, found)}\n`));
    if (isAsked && !(await agrees('Import them?', context))) {
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
  const seen = new Set(found.files.map(({ path }) => path));
  const isThere = (path: string) => seen.has(path) || factsAt(path) !== undefined;
  const isWhole = !isNamed && existsSync(home.dir);
  const gone = isWhole ? table.markGone(isThere, io.now()) : [];
  if (isWhole) table.searched(io.now());
  return await sayDone({ found, tools, done, gone, isNamed }, context);
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
