import yargs, { type Argv, type Options as YargsOption } from 'yargs';
import { UsageError } from '../errors/kinds.ts';
import { stdinWord } from '../input.ts';
import { commonOptions } from '../options/common.ts';
import { camelOf, type Option, type Options } from '../options/declare.ts';
import type { Verb } from '../verbs/verb.ts';
import { withSessionOfId } from './id-words.ts';
import { isCount, type Line, type Values, valuesOf, wordsOf } from './line.ts';
import { unmarked } from './literal-words.ts';
import { usageText } from './usage-text.ts';
import { helpFor } from './verb-in.ts';

/**
 * Reads any command line of a verb with yargs.
 * @param argv the words, with the verb first
 * @throws UsageError
 */
export async function readLine(argv: readonly string[], verb: Verb): Promise<Line> {
  const options: Options = { ...commonOptions, ...verb.options };
  const negated = argv.find((word) => word.startsWith('--no-') && !isNegatable(word.slice(5), options));
  if (negated !== undefined) throw new UsageError(`cannot use ${negated}: no such option`);
  let line: Line | undefined;
  const parser = parserFor(argv, { verb, options }).command({
    command: verb.command,
    aliases: [...(verb.aliases ?? []), ...(verb.synonyms ?? [])],
    builder: (own) => describeVerb(own, verb),
    handler: (args) => {
      line = { verb, word: String(args._[0]), values: valuesIn(args, { verb, options }) };
    },
  });
  await parser.parseAsync(withSessionOfId(argv, verb).map((word) => wordFor(word, options)));
  if (line === undefined) throw new TypeError(`yargs did not find the verb ${verb.command}`);
  return line;
}

/**
 * A word in the form in which yargs reads it as it is meant: it would parse a lone dash as an option without a name,
 * or drop it, and take a `true` that follows a flag for the value of that.
 */
function wordFor(word: string, options: Options): string {
  if (word === '-') return stdinWord;
  const found = Object.entries(options).find(
    ([name, { alias }]) => word === `--${name}` || word === `-${alias}`,
  );
  return found?.[1].type === 'boolean' ? `--${found[0]}=true` : word;
}

/** Whether an option may be negated: yargs accepts `--no-` before any, and would set a text to false. */
function isNegatable(name: string, options: Options): boolean {
  return Object.hasOwn(options, name) && options[name]?.negatable === true;
}

/** A verb, and all options that it has. */
interface Described {
  readonly verb: Verb;
  readonly options: Options;
}

/**
 * The values that yargs has read. Checks what yargs does not: it turns a repeated option into a list, and an invalid
 * number into NaN.
 * @throws UsageError
 */
function valuesIn(args: Readonly<Record<string, unknown>>, { verb, options }: Described): Values {
  const lists = new Set(wordsOf(verb).flatMap(({ name, several }) => (several ? [name] : [])));
  const read = unmarked(args);
  return valuesOf(verb, options, (name, option) => {
    const value = option === undefined ? read[name] : read[camelOf(name)];
    if (Array.isArray(value) && option?.type !== 'list' && !lists.has(name))
      throw new UsageError(`cannot use --${name} more than once`);
    // An empty path, as of a variable of a shell that is not set, would be the working directory.
    if (value === '' && (option?.takes === 'FILE' || option?.takes === 'DIR'))
      throw new UsageError(`cannot use --${name}: it is empty`);
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

function parserFor(argv: readonly string[], { verb, options }: Described): Argv {
  return withOptions(
    yargs()
      .scriptName('tape')
      .locale('en')
      .parserConfiguration({ 'dot-notation': false, 'parse-positional-numbers': false }),
    commonOptions,
  )
    .version(false)
    .help(false)
    .strict()
    .exitProcess(false)
    .fail((message, error) => {
      // This handler must throw, as yargs would otherwise run the command.
      // yargs throws a YError for a bad command line; other errors come from the check of values.
      if (error !== undefined && error !== null && error.name !== 'YError') throw error;
      const text = usageText(unmarked({ message }).message, { argv, options, verb });
      const isWord = text.includes(': no such option') && wordsOf(verb).at(-1)?.several === true;
      throw new UsageError(text, {
        hint: `${isWord ? 'for a word that begins with a dash, write -- before it; or ' : ''}see: ${helpFor(argv)}`,
      });
    });
}

/** Gives yargs the arguments and the options of a verb. */
function describeVerb(y: Argv, verb: Verb): Argv {
  const own = wordsOf(verb).reduce(
    (at, { name, required, several }) => {
      const argument = verb.arguments?.[name];
      const choices = typeof argument === 'object' ? argument.choices : undefined;
      return at.positional(name, {
        type: 'string',
        ...(several && { array: true }),
        ...(required && { demandOption: true }),
        ...(choices !== undefined && { choices }),
      });
    },
    withOptions(y, verb.options ?? {}),
  );
  return Object.entries(verb.conflicts ?? {}).reduce((at, [a, others]) => at.conflicts(a, others), own);
}

function withOptions(y: Argv, options: Options): Argv {
  return Object.entries(options).reduce((at, [name, option]) => at.option(name, optionOf(option)), y);
}

/** An option in the form of yargs. */
function optionOf({ type, alias, choices, negatable, required, needs, ...option }: Option): YargsOption {
  return {
    // yargs composes its help behind every line that it has read, which takes longer than to read it; the help is ours.
    hidden: true,
    ...(option.default !== undefined && { default: option.default }),
    ...(alias !== undefined && { alias }),
    // yargs would check the value of `--no-NAME`, too.
    ...(choices !== undefined && negatable !== true && { choices }),
    ...(required === true && { demandOption: true }),
    ...(needs !== undefined && { implies: needs }),
    ...(type === 'list'
      ? { type: 'array' as const, string: true as const, nargs: 1 }
      : { type, ...(type !== 'boolean' && { requiresArg: true }) }),
  };
}
