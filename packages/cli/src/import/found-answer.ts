import type { Conversation, Discovery, FileImport, FoundFile, Source } from '@tapedeck/runtime/import';
import type { Context } from '../context.ts';
import { jsonText } from '../escape.ts';
import { exit } from '../exit.ts';
import { besideLines } from '../output/beside.ts';
import { counted } from '../output/counted.ts';
import { foundJson, importedText, type Narrowed, passedText, whyNarrowed } from '../output/found.ts';
import { type Pending, parted, type ToolFound } from './conversations.ts';
import { dryFilesOf, sayDry } from './dry-run.ts';
import { type LeftOut, leftOutBy, leftOutJson, sayLeftOut } from './left-out.ts';
import { importJson, receiptJson } from './receipt.ts';
import { sayLines } from './transcript.ts';

/** What a search found. */
interface Finding {
  readonly found: Discovery;
  readonly tools: readonly ToolFound[];
  /** The conversations that are not taken since they were forgotten. */
  readonly forgotten: readonly Conversation[];
  readonly narrowed: Narrowed;
  /** Whether the user named the files: then one of a tool that is not read was left out. */
  readonly isNamed: boolean;
}

/** Prints what an import would take. Returns 1 if it would leave out files. */
export async function sayFound(
  {
    found,
    tools,
    conversations,
    forgotten,
    narrowed,
    isNamed,
  }: Finding & { readonly conversations: readonly Pending[] },
  context: Context,
): Promise<number> {
  const files = conversations.flatMap((one) => dryFilesOf(one));
  const passed = { ...found, forgotten: filesOf(forgotten).length, narrowed };
  const { others, refused } = partedBy(
    conversations.flatMap(({ known }) => known),
    isNamed,
  );
  const failed = [...others, ...leftOutOf(found, isNamed)];
  const leftOut = [...failed, ...refused, ...passedOver(forgotten, narrowed)];
  await sayDry({ tools, files, passed, leftOut }, context);
  sayLeftOut([...failed, ...refused], context.status);
  return failed.length > 0 ? exit.failed : exit.done;
}

/** Prints what an import did. Returns 1 if files were left out. */
export async function sayDone(
  {
    found,
    tools,
    done,
    gone,
    marked,
    forgotten,
    narrowed,
    isNamed,
  }: Finding & {
    readonly done: readonly FileImport[];
    readonly gone: readonly Source[];
    /** The names of the sessions of which the tapes are all that is left. */
    readonly marked: readonly string[];
  },
  { io, options, answer, status }: Context,
): Promise<number> {
  const files = done.map(importJson);
  const { others, excluded, refused } = partedBy(done, isNamed);
  const silent: readonly LeftOut[] = [...excluded, ...passedOver(forgotten, narrowed)];
  const passed = {
    ...found,
    // They are named with the reason.
    strangers: isNamed ? [] : found.strangers,
    excluded: found.excluded + excluded.length,
    forgotten: filesOf(forgotten).length,
    narrowed,
  };
  const leftOut = [...others, ...leftOutOf(found, isNamed)];
  const json = {
    ...receiptJson(done.flatMap(({ brought }) => brought ?? [])),
    ...foundJson(tools, { ...passed, strangers: found.strangers }),
    ...{ files, left_out: [...leftOut, ...refused, ...silent].map(leftOutJson) },
    ...{ gone: gone.map(({ path }) => path), gone_sessions: marked },
  };
  if (options.jsonl === true) for (const file of files) await io.out(`${jsonText(file)}\n`);
  else {
    const isWhole = leftOut.length + refused.length + passedText(passed).length === 0;
    const beside = besideLines(done.flatMap(({ brought }) => brought ?? []));
    const human = [importedText(tools, done, isWhole), ...beside].join('\n');
    await answer({ json, quiet: json.names.join('\n'), human });
  }
  sayLeftOut([...leftOut, ...refused], status);
  sayLines(
    done.flatMap(({ file, brought }) => (brought === undefined ? [] : [{ ...brought, file: file.path }])),
    status,
  );
  for (const line of passedText(passed)) status(line);
  if (gone.length > 0)
    status(
      `${counted(gone.length, 'file')} of earlier imports ${gone.length === 1 ? 'is' : 'are'} gone; the sessions stay`,
    );
  return leftOut.length > 0 ? exit.failed : exit.done;
}

function filesOf(conversations: readonly Conversation[]): readonly FoundFile[] {
  return conversations.flatMap(({ files }) => files);
}

/** The files that are left out, and are counted alone where a person reads it. Pure. */
function passedOver(forgotten: readonly Conversation[], narrowed: Narrowed): readonly LeftOut[] {
  return [
    ...filesOf(forgotten).map(({ path }) => ({ file: path, why: 'its session was forgotten' })),
    ...narrowed.files.map((file) => ({ file: file.path, why: whyNarrowed(narrowed, file) })),
  ];
}

/** What was left out of files: as their user wished it, by a pattern or since a session was deleted, and for other reasons. Pure. */
function partedBy(done: readonly FileImport[], isNamed: boolean) {
  const [asWished, others] = parted(done.flatMap(leftOutBy), ({ code }) => !isNamed && wished.has(code));
  const [excluded, refused] = parted(asWished, ({ code }) => code === 'IMPORT_EXCLUDED');
  return { others, excluded, refused };
}

/** Why a file is left out that its user left out before, by a pattern, or by what became of its session. */
const wished: ReadonlySet<string> = new Set(['IMPORT_EXCLUDED', 'TAPE_ARCHIVED']);

/** The files that cannot be imported, as far as the search knows. Pure. */
function leftOutOf({ files, strangers, problems }: Discovery, isNamed: boolean): readonly LeftOut[] {
  const unreadable = problems.map(({ path, why }) => ({ file: path, why }));
  if (!isNamed) return unreadable;
  const unread = files
    .filter(({ tool }) => tool.plan === undefined)
    .map(({ path, tool }) => ({ file: path, why: `${tool.file}: recognised, not yet read` }));
  const unknown = strangers.map(({ path, like }) => ({
    file: path,
    why: like === undefined ? 'its records are of no tool that is known' : `looks like ${like}: not known`,
  }));
  return [...unreadable, ...unread, ...unknown];
}
