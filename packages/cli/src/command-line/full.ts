import { readFileSync } from 'node:fs';
import yargs, { type Argv, type Options as YargsOption } from 'yargs';
import { UsageError } from '../errors/kinds.ts';
import { stdinWord } from '../input.ts';
import type { Io } from '../io.ts';
import { commonOptions } from '../options/common.ts';
import { camelOf, type Option, type Options } from '../options/declare.ts';
import { packageFile } from '../package-file.ts';
import { nameOf, type Verb } from '../verbs/verb.ts';
import { withSessionOfId } from './id-words.ts';
import { isCount, type Line, type Values, valuesOf, wordsOf } from './line.ts';
import { unmarked } from './literal-words.ts';
import { usageText } from './usage-text.ts';
import { helpFor, namedIn } from './verb-in.ts';

/**
 * Reads any command line with yargs. Returns the text of the help or the version where the line requests it.
 * @throws UsageError
 */
export async function readLine(
  argv: readonly string[],
  verbs: readonly Verb[],
  { columns }: Pick<Io, 'columns'>,
): Promise<Line | string> {
  const negated = argv.find((word) => word.startsWith('--no-') && !isNegatable(word.slice(5), verbs));
  if (negated !== undefined) throw new UsageError(`cannot use ${negated}: no such option`);
  let line: Line | undefined;
  let printed = '';
  const parser = verbs.reduce(
    (y, verb) =>
      y.command({
        command: verb.command,
        aliases: [...(verb.aliases ?? []), ...(verb.synonyms ?? [])],
        describe: verb.summary,
        builder: (own) => describeVerb(own, verb),
        handler: (args) => {
          line = { verb, word: String(args._[0]), values: valuesIn(args, verb) };
        },
      }),
    parserFor(argv, verbs, columns),
  );
  // yargs parses a lone dash as an option without a name, or drops it.
  const words = withSessionOfId(argv, verbs).map((word) => (word === '-' ? stdinWord : word));
  await parser.parseAsync(words, {}, (_error, _args, output) => {
    printed = output;
  });
  return line ?? printed;
}

/** Whether an option may be negated: yargs accepts `--no-` before any, and would set a text to false. */
function isNegatable(name: string, verbs: readonly Verb[]): boolean {
  const all: readonly Options[] = [commonOptions, ...verbs.map(({ options }) => options ?? {})];
  return all.some((options) => Object.hasOwn(options, name) && options[name]?.negatable === true);
}

/**
 * The values that yargs has read. Checks what yargs does not: it turns a repeated option into a list, and an invalid
 * number into NaN.
 * @throws UsageError
 */
function valuesIn(args: Readonly<Record<string, unknown>>, verb: Verb): Values {
  const options: Options = { ...commonOptions, ...verb.options };
  const lists = new Set(wordsOf(verb).flatMap(({ name, several }) => (several ? [name] : [])));
  const read = unmarked(args);
  return valuesOf(verb, options, (name, option) => {
    const value = option === undefined ? read[name] : read[camelOf(name)];
    if (Array.isArray(value) && option?.type !== 'list' && !lists.has(name))
      throw new UsageError(`cannot use --${name} more than once`);
    if (typeof value === 'string' && option?.choices?.includes(value) === false)
      throw new UsageError(
        `cannot use --${name} "${value}": expected one of ${option.choices.map((one) => `"${one}"`).join(', ')}`,
      );
    if (typeof value === 'number' && !isCount(name, value))
      throw new UsageError(
        `cannot read ${name.length === 1 ? '-' : '--'}${name}: it must be a whole number from 0`,
      );
    return value;
  });
}

function parserFor(argv: readonly string[], verbs: readonly Verb[], columns: number): Argv {
  return withOptions(
    yargs()
      .scriptName('tape')
      .locale('en')
      .wrap(Math.min(100, columns))
      .parserConfiguration({ 'dot-notation': false, 'parse-positional-numbers': false }),
    commonOptions,
  )
    .version(version())
    .help()
    .alias('help', 'h')
    .strict()
    .recommendCommands()
    .demandCommand(1)
    .exitProcess(false)
    .fail((message, error, usage) => {
      // This handler must throw, as yargs would otherwise run the command.
      // yargs throws a YError for a bad command line; other errors come from the check of values.
      if (error !== undefined && error !== null && error.name !== 'YError') throw error;
      const text = unmarked({ message }).message.replace(/^Did you mean (.+)\?$/, (_all, word: string) => {
        // yargs knows the earlier names, which no text names.
        const verb = verbs.find(({ synonyms = [] }) => synonyms.includes(word));
        return `no such verb: did you mean ${verb === undefined ? word : nameOf(verb)}?`;
      });
      const options = Object.keys((usage as unknown as Described).getDescriptions());
      throw new UsageError(
        usageText(text, {
          argv,
          options,
          grammar: verbs.find((verb) => nameOf(verb) === namedIn(argv))?.command,
        }),
        {
          hint: `see: ${helpFor(argv)}`,
        },
      );
    });
}

/** What yargs gives to a handler of failures, other than its types say: the descriptions of all options. */
interface Described {
  getDescriptions(): Readonly<Record<string, unknown>>;
}

/** Gives yargs the help, the arguments and the options of a verb. */
function describeVerb(y: Argv, verb: Verb): Argv {
  const detail = verb.detail === undefined ? '' : `\n\n${verb.detail}`;
  const usage = y.usage(`tape ${verb.command}\n\n${verb.summary}${detail}`);
  const own = wordsOf(verb).reduce(
    (at, { name, required, several }) => {
      const argument = verb.arguments?.[name];
      const { describe, choices } =
        typeof argument === 'object' ? argument : { describe: argument, choices: undefined };
      return at.positional(name, {
        type: 'string',
        ...(several && { array: true }),
        ...(required && { demandOption: true }),
        ...(describe !== undefined && { describe }),
        ...(choices !== undefined && { choices }),
      });
    },
    withOptions(usage, verb.options ?? {}),
  );
  const strict = Object.entries(verb.conflicts ?? {}).reduce(
    (at, [a, others]) => at.conflicts(a, others),
    own,
  );
  return verb.examples.reduce((at, [command, does]) => at.example(command, does), strict);
}

function withOptions(y: Argv, options: Options): Argv {
  return Object.entries(options).reduce((at, [name, option]) => at.option(name, optionOf(option)), y);
}

/** An option in the form of yargs. */
function optionOf({ type, required, needs, ...option }: Option): YargsOption {
  const { negatable, choices, ...rest } = option;
  return {
    ...rest,
    // yargs would check the value of `--no-NAME`, too.
    ...(choices !== undefined && negatable !== true && { choices }),
    ...(required === true && { demandOption: true }),
    ...(needs !== undefined && { implies: needs }),
    ...(type === 'list'
      ? { type: 'array' as const, string: true as const, nargs: 1 }
      : { type, ...(type !== 'boolean' && { requiresArg: true }) }),
  };
}

function version(): string {
  return (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }).version;
}
