/**
 * The command `tape`: reads the command line, loads the verb that it names, runs it, and turns what it returns or throws
 * into an exit code.
 *
 * @privateRemarks
 * A verb runs with a `Context`. The package imports `@tapedeck/runtime`, `@tapedeck/graph` and
 * `@tapedeck/tape`, the first two only inside of verbs that need them.
 *
 * @module @tapedeck/cli
 */

import { aliasesFor, withAlias } from './command-line/aliased.ts';
import type { Line, Values } from './command-line/line.ts';
import { withLiteralWords } from './command-line/literal-words.ts';
import { plainLine } from './command-line/plain.ts';
import { helpFor, inHomeOf, namedIn, verbFirst } from './command-line/verb-in.ts';
import { redactIn } from './config/redact.ts';
import { type CommonOptions, makeContext } from './context.ts';
import { describeError } from './errors/describe.ts';
import { UsageError } from './errors/kinds.ts';
import { errorText, requestsJson } from './errors/print.ts';
import { jsonText } from './escape.ts';
import { exit } from './exit.ts';
import { findHome, hasTapes } from './home.ts';
import { type Io, nodeIo, PipeClosed } from './io.ts';
import { consoleOn, type MaskedIo, maskedIo } from './masked-io.ts';
import { secretsInWords } from './server-home.ts';
import { verbName } from './verbs/index.ts';
import { nameOf } from './verbs/verb.ts';

/** Runs the `tape` command and returns its exit code. */
export async function main(line: readonly string[], given: Io): Promise<number> {
  const io = 'hide' in given ? (given as MaskedIo) : maskedIo(given);
  const secrets = secretsInWords([...line, io.env.TAPE_HOME ?? '']);
  if (secrets.length > 0) io.hide(secrets);
  let argv = withLiteralWords(line);
  try {
    try {
      argv = await withAlias(argv, io);
      return await parseAndRun(argv, io);
    } finally {
      await io.done();
    }
  } catch (error) {
    const asJson = requestsJson(argv);
    if (error instanceof PipeClosed) return exit.done;
    if (io.interrupted) {
      const error = { code: 'CLI_INTERRUPTED', message: 'interrupted', data: {} };
      io.err(asJson ? `${jsonText({ error })}\n` : 'Interrupted\n');
      return exit.interrupted;
    }
    const report = describeError(error);
    const { hint = report.code === 'CLI_USAGE' ? `see: ${helpFor(argv)}` : undefined } = report;
    io.err(errorText(error, { asJson, hint: hint && inHomeOf(argv, hint) }));
    return report.exit;
  }
}

async function parseAndRun(argv: readonly string[], io: MaskedIo): Promise<number> {
  if (argv[0] === '__complete') {
    const { complete } = await import('./complete/complete.ts');
    await complete(argv.slice(1), io);
    return exit.done;
  }
  const words = argv.length === 0 && hasTapes(findHome(undefined, io)) ? ['overview'] : argv;
  const line = (await plainLine(words)) ?? (await otherLine(words, io));
  if (typeof line !== 'string') {
    const { verb, word } = line;
    const fits = io.isTerminal && verb.paged === true && isText(line.values);
    const { values, out } = await asRecords(line, fits ? (await import('./fitted-io.ts')).fittedIo(io) : io);
    if (verb.paged !== undefined && values.follow !== true && values.watch !== true) await io.page();
    return await verb.run(
      values,
      makeContext(out, { options: values as CommonOptions, word, isVerb, redactIn }, main),
    );
  }
  await io.page();
  await (io.isTerminal ? (await import('./fitted-io.ts')).fittedIo(io) : io).out(line);
  return argv.length === 0 ? exit.usage : exit.done;
}

function isVerb(word: string): boolean {
  return verbName(word) !== undefined;
}

/** Whether a verb prints text for people: no data, which another program reads, and no file or part of one. */
function isText({ json, jsonl, quiet, format, output }: Values): boolean {
  return [json, jsonl, quiet, format, output].every((value) => value === undefined || value === false);
}

/** The values of a line, and where its output goes, with `--format` and `--null`. */
async function asRecords(
  { verb, values }: Line,
  io: MaskedIo,
): Promise<{ readonly values: Values; readonly out: MaskedIo }> {
  // A verb can have another option of that name.
  const format = verb.options?.format === undefined ? (values.format as string | undefined) : undefined;
  const nul = values.null === true;
  if (format === undefined && !nul) return { values, out: io };
  if (format !== undefined && (values.json === true || values.jsonl === true || values.quiet === true))
    throw new UsageError('cannot use --format with --json, --jsonl or --quiet: each says what is printed');
  if (format === undefined && values.quiet !== true)
    throw new UsageError('cannot use --null without --quiet or --format: other output has no records');
  const { recordIo } = await import('./records.ts');
  const out = await recordIo(io, nameOf(verb), { format, nul });
  return { values: format === undefined ? values : { ...values, jsonl: true }, out };
}

/** Reads a line that is not plain: the help that it requests, or its values with yargs, which takes long to load. */
async function otherLine(argv: readonly string[], io: Io): Promise<Line | string> {
  const { helpIn } = await import('./help/help.ts');
  const help = await helpIn(argv, io);
  if (help !== undefined) return help;
  const { askedVerb } = await import('./command-line/asked-verb.ts');
  const others = namedIn(argv) === undefined ? await aliasesFor(argv, io) : undefined;
  const verb = await askedVerb(argv, [...(others?.keys() ?? [])]);
  const { readLine } = await import('./command-line/full.ts');
  return await readLine(verbFirst(argv), verb);
}

export { reportEarlyExit } from './early-exit.ts';
export type { Terminal } from './io.ts';
export { consoleOn, type Io, type MaskedIo, maskedIo, nodeIo };
