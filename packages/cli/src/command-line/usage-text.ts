import { nearNames } from '@tapedeck/tape/store';
import { oneLine, shellWord } from '../escape.ts';
import type { Options } from '../options/declare.ts';
import type { Verb } from '../verbs/verb.ts';
import { wordsOf } from './line.ts';

/** The command line that yargs refuses, its verb, and the options of that. */
interface Line {
  readonly argv: readonly string[];
  readonly verb: Verb;
  readonly options: Options;
}

/** Says what is wrong with a command line, from what yargs says of it. Pure. */
export function usageText(message: string, line: Line): string {
  const text = message.replace(/\s*\n\s*/g, ' ');
  for (const [pattern, words] of rules) {
    const found = pattern.exec(text);
    if (found !== null) return words(line, ...found.slice(1));
  }
  return 'cannot read the command line';
}

type Words = (line: Line, ...found: readonly string[]) => string;

const rules: readonly (readonly [pattern: RegExp, words: Words])[] = [
  [/^Unknown arguments?: (.+)$/s, (line, names = '') => unknown(line, names.split(', '))],
  [/^Not enough non-option arguments/, ({ verb }) => `arguments are missing: expected tape ${verb.command}`],
  [/^Missing required arguments?: (.+)$/, (line, names = '') => missing(line, names.split(', '))],
  [/^Not enough arguments following: (\S+)/, (_, name = '') => `cannot use ${dashed(name)}: it has no value`],
  [
    /^Missing dependent arguments:\s*(\S+) -> (\S+)/,
    (_, one = '', other = '') => `--${one} needs --${other}, too`,
  ],
  [
    /^Implications failed:\s*(\S+) -> (\S+)/,
    (_, one = '', other = '') => `cannot use ${dashed(one)} without ${dashed(other)}`,
  ],
  [
    /^Arguments (\S+) and (\S+) are mutually exclusive/,
    (_, one = '', other = '') =>
      `cannot use ${dashed(one)} with ${dashed(other)}: they are mutually exclusive`,
  ],
  [
    /^Invalid values: Argument: (\S+), Given: (.+), Choices: (.+)$/s,
    ({ verb }, name = '', given, choices) => {
      const isArgument = wordsOf(verb).some((word) => word.name === name);
      return `cannot use ${isArgument ? name : dashed(name)} ${given}: expected one of ${choices}`;
    },
  ],
];

function unknown({ argv, options }: Line, names: readonly string[]): string {
  const option = names.find((name) =>
    argv.some((word) => word === dashed(name) || word.startsWith(`${dashed(name)}=`)),
  );
  // A name that begins with a hyphen, as those of the folders of Claude Code do, reads as options of one letter.
  const letters = argv.find((word) => /^-[^-]{2}/.test(word) && names.every((name) => word.includes(name)));
  if (option === undefined && letters !== undefined && names.every((name) => name.length === 1))
    return `cannot use ${letters}: no such options`;
  if (option === undefined)
    return `cannot use ${names.map((name) => `'${name}'`).join(', ')}: there are too many arguments`;
  const known = Object.keys(options).filter((name) => name.length > 1 && options[name]?.hidden !== true);
  // Any name is near to one letter.
  const meant =
    option.length === 1 ? known.filter((name) => name.startsWith(option)) : nearNames(option, known);
  const near = meant.map(dashed);
  const hint = near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`;
  return `cannot use ${dashed(option)}: no such option${hint}`;
}

function missing(line: Line, names: readonly string[]): string {
  const [name = '', another] = names;
  const [extra] = looseWords(line).slice(wordsOf(line.verb).length);
  if (extra === undefined || another !== undefined) return `${listOf(names)} is missing`;
  const isShort = oneLine(extra, 60) === extra;
  return `${dashed(name)} is missing; did you mean ${dashed(name)} ${isShort ? shellWord(extra) : 'TEXT'}?`;
}

/** The words after the verb that are neither options nor values of options. */
function looseWords({ argv, options }: Line): readonly string[] {
  const loose: string[] = [];
  for (let i = 1; i < argv.length; i += 1) {
    const word = argv[i] ?? '';
    const [, name = ''] = /^--?([^=]+)$/.exec(word) ?? [];
    if (!word.startsWith('-')) loose.push(word);
    else if (Object.hasOwn(options, name) && options[name]?.type !== 'boolean') i += 1;
  }
  return loose;
}

function listOf(names: readonly string[]): string {
  return names.map(dashed).join(', ');
}

function dashed(name: string): string {
  return `${name.length === 1 ? '-' : '--'}${name}`;
}
