/**
 * Reads the command line: which verb it names, and the values of its arguments and options. `plain.ts` reads the lines
 * that leave no doubt; `full.ts` reads all others with yargs, which also prints the help, and refuses what is wrong.
 * Both return the same values for a line that both read. `configured.ts` finds out whether a line loads a configuration; `aliased.ts` puts words in the place of an alias. Imports `verbs`, `config`, `options` and what lies
 * below.
 */
import { camelOf, type Option, type Options } from '../options/declare.ts';
import type { Verb } from '../verbs/verb.ts';

/** The values of one command line, by the names of its arguments and options in camel case. */
export type Values = Readonly<Record<string, unknown>>;

/** A command line that was read. */
export interface Line {
  readonly verb: Verb;
  /** The word that named the verb. */
  readonly word: string;
  readonly values: Values;
}

/** An argument in the grammar of a verb. */
export interface Word {
  readonly name: string;
  readonly required: boolean;
  readonly several: boolean;
}

/** The arguments in the grammar of a verb: `<name>`, `[name]`, `<names..>` or `[names..]`. */
export function wordsOf({ command }: Pick<Verb, 'command'>): readonly Word[] {
  return command
    .split(' ')
    .slice(1)
    .map((word) => ({
      name: word.slice(1, -1).replace('..', ''),
      required: word.startsWith('<'),
      several: word.includes('..'),
    }));
}

/** Numbers may be fractions where they are seconds. */
const seconds: ReadonlySet<string> = new Set(['wait', 'timeout']);

/** Whether a number is a possible value of an option. */
export function isCount(name: string, value: number): boolean {
  return value >= 0 && (seconds.has(name) || Number.isSafeInteger(value));
}

/** The values of a line in the form that verbs receive: each declared option, by its name in camel case. */
export function valuesOf(
  verb: Verb,
  options: Options,
  read: (name: string, option?: Option) => unknown,
): Values {
  const values: Record<string, unknown> = {};
  for (const { name } of wordsOf(verb)) values[name] = read(name);
  for (const [name, option] of Object.entries(options)) values[camelOf(name)] = read(name, option);
  return values;
}
