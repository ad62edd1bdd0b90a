import type { Conversation, FileImport, TranscriptFormat } from '@tapedeck/runtime/import';
import { type HomeStore, openTapeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { jsonText, safe } from '../escape.ts';
import { hasDatabase } from '../home.ts';
import { foundJson, foundText, type Passed } from '../output/found.ts';
import { byTool, foundOf, type Pending, type ToolFound } from './conversations.ts';
import { type Failed, type LeftOut, leftOutJson } from './left-out.ts';
import { type FileJson, fileJson } from './receipt.ts';

/** A file as a dry run says it. */
interface DryFile extends FileJson {
  readonly new: boolean;
}

/** What a dry run of files that the user named would import, and leave out. */
export interface Foreseen {
  readonly tools: ToolFound[];
  readonly files: DryFile[];
  readonly leftOut: Failed[];
}

/** Runs what only reads the tapes of a home, also where it has none. */
export async function readingIfThere<T>(
  act: (store: HomeStore) => Promise<T>,
  { home, reading }: Pick<Context, 'home' | 'reading'>,
): Promise<T> {
  if (hasDatabase(home)) return await reading(act);
  using none = openTapeStore(':memory:');
  return await act(none);
}

/** The files of a conversation as a dry run says them. Pure. */
export function dryFilesOf({ files, toRead }: Pending): readonly DryFile[] {
  return files.map((file) => ({
    ...fileJson(file),
    new: file.tool.plan !== undefined && toRead.includes(file),
  }));
}

/** Notes what a conversation would bring, by what became of its files. A session of another name (`as`) has nothing of them yet. */
export function foreseeConversation(
  { tools, files }: Foreseen,
  conversation: Conversation,
  { done, as }: { readonly done: readonly FileImport[]; readonly as: string | undefined },
): void {
  const isNew = ({ seen, brought, error }: FileImport) =>
    (seen !== 'unchanged' || as !== undefined) && brought !== undefined && error === undefined;
  const known = new Set(files.map(({ file }) => file));
  // Two files that the user named can be of one conversation.
  const own = conversation.files.filter(({ path }) => !known.has(path));
  if (own.length === 0) return;
  const fresh = new Set(done.filter(isNew).map(({ file }) => file));
  const pending = { ...conversation, files: own, toRead: own.filter((file) => fresh.has(file)), known: [] };
  tools.push(foundOf(pending));
  files.push(...dryFilesOf(pending));
}

const titles: Readonly<Record<TranscriptFormat, string>> = {
  'claude-code': 'Claude Code',
  nexus3: 'NEXUS3',
  'session-jsonl': 'session.jsonl',
};

/** Notes what one file of a format, or a stream, would bring. */
export function foreseeFile(
  { tools, files }: Foreseen,
  { file, format, session, bytes, at }: SingleFile,
): void {
  const found = { conversations: 1, files: 1, newFiles: 1, bytes, newBytes: bytes, oldest: at };
  tools.push({ tool: format, title: titles[format], isRead: true, ...found });
  files.push({ file, tool: format, session, role: 'main', bytes, new: true });
}

interface SingleFile {
  readonly file: string;
  readonly format: TranscriptFormat;
  readonly session: string;
  readonly bytes: number;
  /** The time of the file, in milliseconds since 1970. */
  readonly at: number;
}

/** Prints what an import of files that the user named would take. */
export async function sayForeseen({ tools, files, leftOut }: Foreseen, context: Context): Promise<void> {
  const count = (code: string) => leftOut.filter((one) => one.code === code).length;
  const passed = {
    ...{ strangers: [], narrowed: { by: '', files: [] } },
    excluded: count('IMPORT_EXCLUDED'),
    forgotten: count('IMPORT_FORGOTTEN'),
    empty: count('IMPORT_EMPTY'),
  };
  await sayDry({ tools: byTool(tools), files, passed, leftOut }, context);
}

/** Prints what an import would take. */
export async function sayDry(
  {
    tools,
    files,
    passed,
    leftOut,
  }: {
    readonly tools: readonly ToolFound[];
    readonly files: readonly DryFile[];
    readonly passed: Passed;
    readonly leftOut: readonly LeftOut[];
  },
  { io, options }: Context,
): Promise<void> {
  if (options.jsonl === true) for (const file of files) await io.out(`${jsonText(file)}\n`);
  else if (options.json === true) {
    const left_out = leftOut.map(leftOutJson);
    await io.out(`${jsonText({ dry_run: true, ...foundJson(tools, passed), files, left_out })}\n`);
  } else if (options.quiet === true)
    for (const { file } of files.filter((one) => one.new)) await io.out(`${safe(file)}\n`);
  else await io.out(`${safe(foundText(tools, passed, io))}\n`);
}
