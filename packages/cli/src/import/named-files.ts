import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import type { TranscriptFormat } from '@tapedeck/runtime/import';
import { isBundle } from '@tapedeck/tape/internal';
import type { Answer, Context } from '../context.ts';
import { describeError } from '../errors/describe.ts';
import { UsageError } from '../errors/kinds.ts';
import { errorText } from '../errors/print.ts';
import { jsonText, pathText } from '../escape.ts';
import { exit } from '../exit.ts';
import { stdinWord } from '../input.ts';
import { PipeClosed } from '../io.ts';
import { beginningOf, headOf, importBundle } from './bundle.ts';
import { parted } from './conversations.ts';
import { type Foreseen, sayForeseen } from './dry-run.ts';
import { knownSources } from './known-sources.ts';
import { failureOf, sayLeftOut } from './left-out.ts';
import { namedPath, whyBundle } from './named-path.ts';
import { importTranscript, type TranscriptChoices } from './transcript.ts';

/** What the user can say that a file is. */
export type NamedFormat = 'auto' | 'bundle' | TranscriptFormat;

interface How extends Omit<TranscriptChoices, 'format'> {
  readonly format: NamedFormat;
}

/**
 * Imports the files that the user named, or says what that would do, and how it would end: both take the same way. Returns
 * the exit code of the first file that is left out, as a whole or in part.
 * @throws UsageError; what is wrong with a file that is the only one
 */
export async function importNamed(
  files: readonly string[],
  { dryRun, ...given }: Omit<How, 'table' | 'foreseen'> & { readonly dryRun: boolean },
  context: Context,
): Promise<number> {
  const foreseen: Foreseen | undefined = dryRun ? { tools: [], files: [], leftOut: [] } : undefined;
  const how = { ...given, foreseen, table: await knownSources(context.home) };
  const code = await importOneOrAll(files, how, context);
  if (foreseen !== undefined) await sayForeseen(foreseen, context);
  return code;
}

async function importOneOrAll(files: readonly string[], how: How, context: Context): Promise<number> {
  const [file = '', ...others] = files;
  if (others.length === 0) return await importFile(file, how, context);
  if (how.as !== undefined)
    throw new UsageError(
      `cannot import ${files.length} files as '${how.as}': it is the name of one session`,
      { hint: 'import them without --as, or one by one' },
    );
  if (files.filter((one) => one === stdinWord).length > 1)
    throw new UsageError('cannot import stdin twice: it is read once');
  return await importAll(files, how, context);
}

/** Imports files one after the other. What is said of them has the order in which they are named. */
async function importAll(files: readonly string[], how: How, context: Context): Promise<number> {
  const { io, options, inHome } = context;
  const asJson = options.json === true || options.jsonl === true;
  const receipts = new Map<number, Answer & { readonly json: object }>();
  const ends = new Map<number, { readonly code: number; readonly error?: string }>();
  let next = 0;
  const say = async (at: number) => {
    const [{ error }, receipt] = [ends.get(at) ?? {}, receipts.get(at)];
    if (error !== undefined) io.err(error);
    if (receipt !== undefined && options.json !== true) await context.answer(receipt);
  };
  // A copy that was made since finds what its source has got, as where `knownFirst` orders what was found.
  const isKnown = (file: string) => (how.table?.at(resolve(io.cwd, file))?.at ?? 0) > 0;
  for (const [at, file] of parted([...files.entries()], ([, one]) => isKnown(one)).flat()) {
    const answer = async (receipt: Answer) => {
      const json = { file: file === stdinWord ? '-' : file, ...(receipt.json as object) };
      receipts.set(at, { ...receipt, json });
    };
    try {
      ends.set(at, { code: await importFile(file, how, { ...context, answer }) });
    } catch (error) {
      if (error instanceof PipeClosed) throw error;
      if (io.interrupted) {
        for (const [later] of files.slice(next).entries()) await say(next + later);
        throw error;
      }
      const { hint, exit: code } = describeError(error);
      how.foreseen?.leftOut.push(failureOf(resolve(io.cwd, file), error, file));
      ends.set(at, { code, error: errorText(error, { asJson, hint: hint && inHome(hint) }) });
    }
    for (; ends.has(next); next += 1) await say(next);
  }
  const all = files.flatMap((_, at) => receipts.get(at)?.json ?? []);
  if (options.json === true && all.length > 0) await io.out(`${jsonText(all)}\n`);
  const failed = files.flatMap((_, at) => ends.get(at)?.code ?? []).find((code) => code !== exit.done);
  return failed ?? exit.done;
}

/** Imports a file, and prints its receipt. Returns 1 if a part of it was left out. */
async function importFile(file: string, { format, ...how }: How, context: Context): Promise<number> {
  const { io } = context;
  const isStdin = file === stdinWord;
  const { path, stat: found } = isStdin ? { path: 'stdin', stat: undefined } : await namedPath(file, io);
  // Such as `<(…)` of a shell.
  const isPipe = found === undefined || found.isFIFO();
  // Without a word, one to which no program writes would look as if the import had stopped.
  if (isPipe && !isStdin && !/^\/(?:dev\/fd|proc)\//.test(path))
    context.status(`Reading ${pathText(file)}, a pipe, until the program ends that writes to it`);
  // What a pipe has given is gone from it: it is read once.
  const piped = isPipe ? await beginningOf(path, isStdin ? io.stdin : createReadStream(path)) : undefined;
  if (format === 'bundle' || (format === 'auto' && (await isBundle(piped?.head ?? (await headOf(path)))))) {
    if (how.foreseen !== undefined) {
      // What a bundle brings is known when it is in the home as a whole.
      sayLeftOut([{ file: path, why: whyBundle(file) }], context.status);
      return exit.failed;
    }
    await importBundle(piped?.source ?? path, how, context);
    return exit.done;
  }
  const source = { path, named: isStdin ? 'stdin' : file, chunks: piped?.chunks };
  return await importTranscript(source, { format, ...how }, context);
}
