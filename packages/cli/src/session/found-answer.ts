import type { Discovery, FoundFile, Source } from '@tapedeck/runtime/internal';
import { isObject } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { describeError } from '../errors/describe.ts';
import { jsonText, safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import { foundJson, foundText, importedText } from '../output/found.ts';
import type { Conversation, ToolFound } from './conversations.ts';
import type { FileImport } from './import-source.ts';

/** What a search found. */
interface Finding {
  readonly found: Discovery;
  readonly tools: readonly ToolFound[];
  /** Whether the user named the files: then one of a tool that is not read was left out. */
  readonly isNamed: boolean;
}

/** Prints what an import would take. */
export async function sayFound(
  { found, tools, conversations, isNamed }: Finding & { readonly conversations: readonly Conversation[] },
  { io, options, status }: Context,
): Promise<number> {
  const files = conversations.flatMap(({ files: all, toRead }) =>
    all.map((file) => ({ ...fileJson(file), new: file.tool.isRead && toRead.includes(file) })),
  );
  const leftOut = leftOutOf(found, isNamed);
  if (options.jsonl === true) for (const file of files) await io.out(`${jsonText(file)}\n`);
  else if (options.json === true)
    await io.out(`${jsonText({ dry_run: true, ...foundJson(tools, found), files, left_out: leftOut })}\n`);
  else if (options.quiet === true)
    for (const { file } of files.filter((one) => one.new)) await io.out(`${safe(file)}\n`);
  else await io.out(`${safe(foundText(tools, found))}\n`);
  sayLeftOut(leftOut, status);
  return exit.done;
}

/** Prints what an import did. Returns 1 if files were left out. */
export async function sayDone(
  {
    found,
    tools,
    done,
    gone,
    isNamed,
  }: Finding & { readonly done: readonly FileImport[]; readonly gone: readonly Source[] },
  { io, options, answer, status }: Context,
): Promise<number> {
  const files = done.map(importJson);
  const failed = done.flatMap(({ file, error }) =>
    error === undefined ? [] : [{ file: file.path, why: describeError(error).message }],
  );
  const leftOut = [...failed, ...leftOutOf(found, isNamed)];
  const json = {
    ...totals(done),
    ...foundJson(tools, found),
    ...{ files, left_out: leftOut, gone: gone.map(({ path }) => path) },
  };
  if (options.jsonl === true) for (const file of files) await io.out(`${jsonText(file)}\n`);
  else await answer({ json, quiet: json.names.join('\n'), human: importedText(tools, done) });
  sayLeftOut(leftOut, status);
  for (const one of done) sayBadLines(one, status);
  if (gone.length > 0)
    status(
      `${counted(gone.length, 'file')} of earlier imports ${gone.length === 1 ? 'is' : 'are'} gone; the sessions stay`,
    );
  return leftOut.length > 0 ? exit.failed : exit.done;
}

/** A file that was left out, with the reason. */
interface LeftOut {
  readonly file: string;
  readonly why: string;
}

/** The files that cannot be imported, as far as the search knows. Pure. */
function leftOutOf({ files, strangers, problems }: Discovery, isNamed: boolean): readonly LeftOut[] {
  const unreadable = problems.map(({ path, why }) => ({ file: path, why }));
  if (!isNamed) return unreadable;
  const unread = files
    .filter(({ tool }) => !tool.isRead)
    .map(({ path, tool }) => ({ file: path, why: `${tool.file}: recognised, not yet read` }));
  const unknown = strangers.map(({ path, like }) => ({
    file: path,
    why: like === undefined ? 'its records are of no tool that is known' : `looks like ${like}: not known`,
  }));
  return [...unreadable, ...unread, ...unknown];
}

/** How many files are named on stderr, and lines of each. */
const shownMax = 20;
const linesMax = 5;

function sayLeftOut(leftOut: readonly LeftOut[], status: (text: string) => void): void {
  for (const { file, why } of leftOut.slice(0, shownMax)) status(`Left out ${file}: ${why}`);
  if (leftOut.length > shownMax) status(`… and ${counted(leftOut.length - shownMax, 'other file')}`);
}

/** Names the lines of a transcript that were left out: without them it is not whole. */
function sayBadLines({ file, receipt }: FileImport, status: (text: string) => void): void {
  const bad = Array.isArray(receipt?.bad_lines) ? receipt.bad_lines.filter(isObject) : [];
  if (bad.length === 0) return;
  const places = bad.slice(0, linesMax).map(({ line, offset }) => `line ${line} (byte ${offset})`);
  const more = bad.length > places.length ? ', …' : '';
  status(`left out of '${file.path}', since it is not JSON: ${places.join(', ')}${more}`);
}

interface FileJson {
  readonly file: string;
  readonly [field: string]: unknown;
}

function fileJson({ path, tool, session, role, project, facts }: FoundFile): FileJson {
  const about = { tool: tool.name, session, role, ...(project !== undefined && { project }) };
  return { file: path, ...about, bytes: facts.size };
}

function importJson({ file, seen, receipt, error }: FileImport): FileJson {
  const { names, entries = 0, counts, bad_lines } = receipt ?? {};
  const brought = receipt === undefined ? {} : { names, counts, bad_lines };
  const said = error === undefined ? undefined : describeError(error);
  return {
    ...fileJson(file),
    ...{ seen, entries, ...brought },
    ...(said !== undefined && { error: { code: said.code, message: said.message } }),
  };
}

/** What the import of a single file has in its receipt, as sums over all. */
function totals(done: readonly FileImport[]) {
  const receipts = done.map(({ receipt = {} }) => receipt);
  const sum = (field: string) => receipts.reduce((total, { [field]: n }) => total + Number(n ?? 0), 0);
  const names = receipts.flatMap(({ names }) => (Array.isArray(names) ? names.map(String) : []));
  const [sessions, entries, repaired, derived] = ['sessions', 'entries', 'repaired', 'derived'].map(sum);
  return { sessions, entries, repaired, derived, names: [...new Set(names)] };
}
