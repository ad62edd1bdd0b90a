/**
 * The command `tape`: reads the command line with yargs, finds the verb, runs it, and turns what it returns
 * or throws into an exit code.
 *
 * @privateRemarks
 * A verb runs with a `Context`. The package imports `@tapedeck/runtime`, `@tapedeck/graph` and
 * `@tapedeck/tape`, the first two only inside of verbs that need them.
 *
 * @module @tapedeck/cli
 */

import { readFileSync } from 'node:fs';
import yargs, { type Argv } from 'yargs';
import { type CommonOptions, makeContext } from './context.ts';
import { describeError } from './errors/describe.ts';
import { UsageError } from './errors/kinds.ts';
import { errorText, requestsJson } from './errors/print.ts';
import { usageText } from './errors/usage-text.ts';
import { jsonText } from './escape.ts';
import { exit } from './exit.ts';
import { helpPage } from './help.ts';
import { withSessionOfId } from './id-words.ts';
import { stdinWord } from './input.ts';
import { type Io, nodeIo, PipeClosed } from './io.ts';
import { unmarked, withLiteralWords } from './literal-words.ts';
import { consoleOn, type MaskedIo, maskedIo } from './masked-io.ts';
import { verbs } from './verbs/index.ts';
import { nameOf, type Verb } from './verbs/verb.ts';

/** Runs the `tape` command and returns its exit code. */
export async function main(line: readonly string[], given: Io): Promise<number> {
  const io = 'hide' in given ? (given as MaskedIo) : maskedIo(given);
  const argv = withLiteralWords(line);
  const asJson = requestsJson(argv);
  try {
    return await parseAndRun(argv, io);
  } catch (error) {
    if (error instanceof PipeClosed) return exit.done;
    if (io.interrupted) {
      const error = { code: 'CLI_INTERRUPTED', message: 'interrupted', data: {} };
      io.err(asJson ? `${jsonText({ error })}\n` : 'Interrupted\n');
      return exit.interrupted;
    }
    const { code, exit: status } = describeError(error);
    const hint = code === 'CLI_USAGE' ? `see: ${helpFor(argv)}` : undefined;
    io.err(errorText(error, { asJson, hint }));
    return status;
  }
}

/**
 * Options that accept `--no-`. yargs accepts it before any option, and would set a string option to false.
 */
const negatable = /^--no-(?:wait|color|own|config)$/;

async function parseAndRun(argv: readonly string[], io: MaskedIo): Promise<number> {
  const negated = argv.find((word) => word.startsWith('--no-') && !negatable.test(word));
  if (negated !== undefined) throw new UsageError(`cannot use ${negated}: no such option`);
  if (argv.length === 0 || (argv.length === 1 && /^(?:--help|-h|help)$/.test(argv[0] ?? ''))) {
    await io.out(helpPage(verbs));
    return argv.length === 0 ? exit.usage : exit.done;
  }
  let status: number | undefined;
  let printed = '';
  const parser = verbs.reduce(
    (y, verb) =>
      y.command({
        command: verb.command,
        aliases: [...(verb.aliases ?? []), ...(verb.synonyms ?? [])],
        describe: verb.summary,
        builder: (own) => describeVerb(own, verb),
        handler: async (args) => {
          assertOptions(args, verb);
          const given = unmarked(args);
          status = await verb.run(given, makeContext(io, given as CommonOptions, main));
        },
      }),
    withCommonOptions(io, argv),
  );
  // yargs parses a lone dash as an option without a name, or drops it.
  const words = withSessionOfId(argv, verbs).map((word) => (word === '-' ? stdinWord : word));
  await parser.parseAsync(words, {}, (_error, _args, output) => {
    printed = output;
  });
  if (printed !== '') await io.out(`${printed}\n`);
  return status ?? exit.done;
}

/** Options in seconds, which may be fractions. */
const seconds: ReadonlySet<string> = new Set(['wait', 'timeout']);

/**
 * Checks what yargs does not: yargs turns a repeated option into a list, and an invalid number into NaN.
 * @throws UsageError
 */
function assertOptions(args: Readonly<Record<string, unknown>>, { lists = [] }: Verb): void {
  for (const [name, value] of Object.entries(args)) {
    if (name !== '_' && Array.isArray(value) && !lists.includes(name))
      throw new UsageError(`cannot use --${name} more than once`);
    if (typeof value === 'number' && !(value >= 0 && (seconds.has(name) || Number.isSafeInteger(value))))
      throw new UsageError(
        `cannot read ${name.length === 1 ? '-' : '--'}${name}: it must be a whole number from 0`,
      );
  }
}

/** The verb that a command line names. */
function verbIn(argv: readonly string[]): Verb | undefined {
  return verbs.find((one) =>
    [nameOf(one), ...(one.aliases ?? []), ...(one.synonyms ?? [])].some((name) => argv.includes(name)),
  );
}

/** The help command for the verb of a command line, or for all verbs. */
function helpFor(argv: readonly string[]): string {
  const verb = verbIn(argv);
  return verb === undefined ? 'tape --help' : `tape ${nameOf(verb)} --help`;
}

function withCommonOptions(io: Io, argv: readonly string[]): Argv<CommonOptions> {
  return yargs()
    .scriptName('tape')
    .locale('en')
    .wrap(Math.min(100, io.columns))
    .parserConfiguration({
      'dot-notation': false,
      'parse-positional-numbers': false,
    })
    .option('home', {
      type: 'string',
      requiresArg: true,
      describe: 'Tape home (default: $TAPE_HOME, else the nearest .tape, else ~/.tape)',
    })
    .option('base', {
      type: 'string',
      requiresArg: true,
      describe: 'Realm of the session names (default: that of the home, else tape)',
    })
    .option('id', {
      type: 'string',
      requiresArg: true,
      describe: 'Id of another program, in the place of the session: its session name is made of it',
    })
    .option('json', { type: 'boolean', describe: 'Print one JSON document on stdout' })
    .option('jsonl', { type: 'boolean', describe: 'Print JSON lines on stdout' })
    .option('quiet', { type: 'boolean', describe: 'Print ids only, and no status' })
    .option('color', { type: 'boolean', describe: 'Colour the output (default: on a terminal)' })
    .option('durability', {
      type: 'string',
      requiresArg: true,
      choices: ['full', 'fast'] as const,
      describe: 'fast: a power cut may lose the latest entries (default: full)',
    })
    .version(version())
    .help()
    .alias('help', 'h')
    .strict()
    .recommendCommands()
    .demandCommand(1)
    .exitProcess(false)
    .fail((message, error, usage) => {
      // This handler must throw, as yargs would otherwise run the command.
      // yargs throws a YError for a bad command line; other errors come from the verb.
      if (error !== undefined && error !== null && error.name !== 'YError') throw error;
      const text = unmarked({ message }).message.replace(/^Did you mean (.+)\?$/, (_all, word: string) => {
        // yargs knows the earlier names, which no text names.
        const verb = verbs.find(({ synonyms = [] }) => synonyms.includes(word));
        return `no such verb: did you mean ${verb === undefined ? word : nameOf(verb)}?`;
      });
      const options = Object.keys((usage as unknown as Described).getDescriptions());
      throw new UsageError(usageText(text, { argv, options, grammar: verbIn(argv)?.command }), {
        hint: `see: ${helpFor(argv)}`,
      });
    });
}

/** What yargs gives to a handler of failures, other than its types say: the descriptions of all options. */
interface Described {
  getDescriptions(): Readonly<Record<string, unknown>>;
}

function describeVerb(y: Argv<CommonOptions>, verb: Verb): Argv<CommonOptions> {
  const detail = verb.detail === undefined ? '' : `\n\n${verb.detail}`;
  const own = verb.options(
    y.usage(`tape ${verb.command}\n\n${verb.summary}${detail}`),
  ) as Argv<CommonOptions>;
  return verb.examples.reduce((at, [command, does]) => at.example(command, does), own);
}

function version(): string {
  const file = new URL('../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

export { reportEarlyExit } from './early-exit.ts';
export { consoleOn, type Io, type MaskedIo, maskedIo, nodeIo };
