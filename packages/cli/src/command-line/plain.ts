import { stdinWord } from '../input.ts';
import { commonOptions } from '../options/common.ts';
import type { Option, Options } from '../options/declare.ts';
import { verbNamed } from '../verbs/index.ts';
import type { Verb } from '../verbs/verb.ts';
import { isCount, type Line, type Values, valuesOf, wordsOf } from './line.ts';
import { unmarked } from './literal-words.ts';
import { verbFirst } from './verb-in.ts';

/** Reads a command line that leaves no doubt; undefined for every other line. */
export async function plainLine(argv: readonly string[]): Promise<Line | undefined> {
  const [word = '', ...words] = verbFirst(argv);
  const verb = await verbNamed(word);
  const values = verb && plainValues(words, verb);
  return verb && values && { verb, word, values };
}

/**
 * The values of a command line that leaves no doubt: `NAME WORD… --option VALUE --flag`. Undefined for every other
 * line, also a wrong one, which yargs reads or refuses.
 * @param words the words after the name of the verb
 */
function plainValues(words: readonly string[], verb: Verb): Values | undefined {
  const options: Options = { ...commonOptions, ...verb.options };
  const named = namesOf(options);
  const given = new Map<string, unknown>();
  const loose: string[] = [];
  for (let i = 0; i < words.length; i += 1) {
    const word = words[i] ?? '';
    if (word === '') return undefined;
    if (word === '-' || !word.startsWith('-')) {
      if (isQuoted(word)) return undefined;
      loose.push(word === '-' ? stdinWord : word);
      continue;
    }
    const { name, option, attached, negated } = named(word) ?? {};
    if (name === undefined || option === undefined || name === 'id') return undefined;
    let value: unknown;
    if (negated === true) value = option.type === 'number' ? 0 : false;
    else if (option.type === 'boolean') {
      if (attached !== undefined) return undefined;
      value = true;
    } else {
      if (attached === undefined) i += 1;
      const text = attached ?? words[i];
      value =
        text === undefined ? undefined : valueIn(text, { name, option, isAttached: attached !== undefined });
      if (value === undefined) return undefined;
    }
    const before = given.get(name);
    if (option.type === 'list') given.set(name, [...((before as readonly string[]) ?? []), value]);
    else if (before === undefined) given.set(name, value);
    else return undefined;
  }
  const isComplete = placeWords(loose, { verb, given }) && isAllowed(given, { verb, options });
  return isComplete
    ? unmarked(valuesOf(verb, options, (name, option) => given.get(name) ?? option?.default))
    : undefined;
}

interface Named {
  readonly name: string;
  readonly option: Option;
  readonly attached?: string;
  readonly negated?: boolean;
}

/** Finds the option that a word names: `--name`, `--name=VALUE`, `--no-name` or `-n`. */
function namesOf(options: Options): (word: string) => Named | undefined {
  const byLetter = new Map<string, string>();
  for (const [name, { alias }] of Object.entries(options)) if (alias !== undefined) byLetter.set(alias, name);
  const find = (name: string, more: Partial<Named> = {}): Named | undefined => {
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    return option && { name, option, ...more };
  };
  return (word) => {
    if (/^-\w$/.test(word)) return find(byLetter.get(word[1] ?? '') ?? word.slice(1));
    const [, negation, name = '', attached] = /^--(no-)?([a-z][a-z-]+)(?:=(.+))?$/s.exec(word) ?? [];
    if (negation === undefined) return find(name, attached === undefined ? {} : { attached });
    const negated = attached === undefined ? find(name, { negated: true }) : undefined;
    return negated?.option.negatable === true ? negated : undefined;
  };
}

/** The value that a text is for an option; undefined when that is in doubt. */
function valueIn(
  text: string,
  { name, option, isAttached }: { name: string; option: Option; isAttached: boolean },
): string | number | undefined {
  if (text === '' || isQuoted(text) || (text.startsWith('-') && (isAttached || text !== '-')))
    return undefined;
  if (option.choices !== undefined && !option.choices.includes(text)) return undefined;
  if (option.type !== 'number') return text === '-' && !isAttached ? stdinWord : text;
  const number = /^(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  return isCount(name, number) ? number : undefined;
}

/** Whether yargs would remove quotes around a word. */
function isQuoted(word: string): boolean {
  return /^(['"]).*\1$/s.test(word);
}

/** Gives words to the arguments of a verb; false when there are too few or too many. */
function placeWords(
  loose: readonly string[],
  { verb, given }: { verb: Verb; given: Map<string, unknown> },
): boolean {
  const rest = [...loose];
  for (const { name, required, several } of wordsOf(verb)) {
    if (required && rest.length === 0) return false;
    const word = several ? rest.splice(0) : rest.shift();
    if (word === undefined) continue;
    const argument = verb.arguments?.[name];
    if (typeof argument === 'object' && !argument.choices.includes(String(word))) return false;
    given.set(name, word);
  }
  return rest.length === 0;
}

/** Whether required options are given, with those that they need, and without those that they exclude. */
function isAllowed(
  given: ReadonlyMap<string, unknown>,
  { verb, options }: { verb: Verb; options: Options },
): boolean {
  const has = (name: string) => given.has(name) || options[name]?.default !== undefined;
  for (const [name, { required = false, needs }] of Object.entries(options)) {
    if (required && !given.has(name)) return false;
    if (needs !== undefined && given.has(name) && !given.has(needs)) return false;
  }
  return !Object.entries(verb.conflicts ?? {}).some(([name, others]) => has(name) && others.some(has));
}
