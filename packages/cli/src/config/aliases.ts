import { readFileSync, statSync } from 'node:fs';
import { isObject } from '@tapedeck/tape/internal';
import { ConfigError } from '../errors/kinds.ts';
import type { Home } from '../home.ts';
import { homeConfigFile } from './find.ts';

/** What the names of verbs stand for that a user made: `lg` for `log --graph`. */
export type Aliases = ReadonlyMap<string, string>;

const namePattern = /^[A-Za-z][\w-]*$/;

/**
 * Reads the aliases of `config.yaml` of a home, and no other field. Loads YAML only for a file that can have some.
 * @throws ConfigError for a file that is no YAML
 */
export async function readAliases(home: Pick<Home, 'dir'>): Promise<Aliases> {
  const file = homeConfigFile(home);
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) return new Map();
  const text = readFileSync(file, 'utf8');
  if (!text.includes('alias')) return new Map();
  const { parse } = await import('yaml');
  try {
    return aliasesIn(parse(text, { stringKeys: true, prettyErrors: false, logLevel: 'error' }));
  } catch (cause) {
    throw new ConfigError('CLI_BAD_CONFIG', `cannot use '${file}': ${(cause as Error).message}`, {
      data: { config: file },
      cause,
    });
  }
}

/** The aliases in the data of a `config.yaml`. */
function aliasesIn(data: unknown): Aliases {
  const given = isObject(data) && isObject(data.alias) ? Object.entries(data.alias) : [];
  return new Map(
    given.filter(
      (pair): pair is [string, string] => namePattern.test(pair[0]) && typeof pair[1] === 'string',
    ),
  );
}

/** The keys of the aliases in the data of a `config.yaml`. */
export function aliasKeys(data: unknown): readonly string[] {
  return [...aliasesIn(data).keys()].map((name) => `alias.${name}`);
}

/** Why a name cannot stand for a text; undefined when it can. Pure. */
export function aliasFault(
  name: string,
  text: unknown,
  { isVerb, aliases }: { readonly isVerb: (word: string) => boolean; readonly aliases: Aliases },
): string | undefined {
  if (!namePattern.test(name)) return 'its name must be letters, digits, - and _, and begin with a letter';
  if (isVerb(name) || name === 'help') return `${name} is a verb, which no alias can hide`;
  if (typeof text !== 'string') return 'it must be a text';
  const words = splitWords(text);
  if (typeof words === 'string') return words;
  const [verb] = words;
  if (verb === undefined) return 'it is empty';
  if (isVerb(verb)) return undefined;
  return aliases.has(verb) || verb === name
    ? `'${verb}' is an alias, and an alias stands for a verb`
    : `it must begin with a verb, and '${verb}' is not a verb`;
}

/**
 * Splits a text into words as a shell does: at blanks, with quotes and backslashes. Nothing is expanded or run: what a
 * shell would do so with has to be quoted.
 * @returns the words, or why there are none
 */
export function splitWords(text: string): readonly string[] | string {
  const token = /\s+|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^\s'"\\]+)|(['"\\])/g;
  const words: string[] = [];
  let word: string | undefined;
  for (const [, single, double, escaped, plain, open] of text.matchAll(token)) {
    if (open !== undefined)
      return open === '\\' ? 'it ends with a backslash' : `a quote (${open}) is not closed`;
    const [active] =
      /[$`]/.exec(double?.replace(/\\[\s\S]/g, '') ?? '') ??
      /[|&;<>()$`]/.exec(plain ?? '') ??
      (word === undefined ? /^~/.exec(plain ?? '') : undefined) ??
      [];
    if (active !== undefined) return `it has a ${active} that is not quoted, and an alias runs no shell`;
    const part = single ?? double?.replace(/\\([$`"\\])/g, '$1') ?? escaped ?? plain;
    if (part !== undefined) word = (word ?? '') + part;
    else if (word !== undefined) {
      words.push(word);
      word = undefined;
    }
  }
  return word === undefined ? words : [...words, word];
}
