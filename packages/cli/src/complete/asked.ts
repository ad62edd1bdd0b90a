import { wordsOf } from '../command-line/line.ts';
import { verbAt } from '../command-line/verb-in.ts';
import { keys } from '../config/keys.ts';
import { commonOptions } from '../options/common.ts';
import type { Option, Options } from '../options/declare.ts';
import { verbNamed } from '../verbs/index.ts';

/** What the last word of an unfinished command line can be. */
export type Asked =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  /** A verb, or an alias of one. */
  | { readonly kind: 'verbs' }
  /** What has a page of the help: a verb, an alias of one, or a topic. */
  | { readonly kind: 'pages' }
  /** A session, or a point of one where the word has an `@`. */
  | { readonly kind: 'places' }
  /** A point of the session that the line names: an anchor, alone. */
  | { readonly kind: 'points'; readonly place: string }
  /** A remote of the home. */
  | { readonly kind: 'remotes' }
  /** Nothing that is known here: the shell offers files. */
  | { readonly kind: 'other' };

/** Names of arguments and options that are a session, or a point of one. */
const placeNames: ReadonlySet<string> = new Set([
  ...['name', 'names', 'place', 'parent', 'child', 'other', 'a', 'b', 'into', 'by', 'session', 'resume'],
]);

/** Names of options that are a point of the session before them. */
const pointNames: ReadonlySet<string> = new Set(['since', 'until']);

/**
 * Finds out what the last word of a command line can be, from what its verb declares. Loads no other verb.
 * @param words the words after `tape`, the last one being typed
 */
export async function askedBy(words: readonly string[]): Promise<Asked> {
  const current = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const at = verbAt(before);
  const verb = at === -1 ? undefined : await verbNamed(before[at] ?? '');
  const options: Options = { ...commonOptions, ...verb?.options };
  const open = openOption(before, options);
  if (open !== undefined && verb !== undefined && pointNames.has(open.name)) {
    const [place] = looseWords(before.slice(at + 1), options);
    // Where a session may be left out, as in a list, the option takes a time, unless a place can have a point itself.
    const isOfSession = /^(?:<|\[place\])/.test(verb.command.split(' ')[1] ?? '');
    if (place !== undefined && isOfSession) return { kind: 'points', place };
  }
  if (open !== undefined) return valuesOf(open.name, open.option);
  if (before[at] === 'help') return pageOf(before.slice(at + 1), current);
  if (current.startsWith('-'))
    return {
      kind: 'words',
      words: [...optionWords(options, before), '--help', ...(at === -1 ? ['--version'] : [])],
    };
  if (at === -1) return { kind: 'verbs' };
  if (verb === undefined) return { kind: 'other' };
  const grammar = wordsOf(verb);
  const count = looseWords(before.slice(at + 1), options).length;
  const last = grammar.at(-1);
  const { name } = grammar[count] ?? (last?.several === true ? last : { name: '' });
  const argument = verb.arguments?.[name];
  if (typeof argument === 'object') return { kind: 'words', words: argument.choices };
  if (name === 'key') return { kind: 'words', words: keys.filter((key) => !key.includes('*')) };
  return namedBy(name);
}

function namedBy(name: string): Asked {
  if (name === 'remote') return { kind: 'remotes' };
  return { kind: placeNames.has(name) ? 'places' : 'other' };
}

/** What `tape help` takes: one page, or `--all`. */
function pageOf(before: readonly string[], current: string): Asked {
  if (before.length > 0) return { kind: 'other' };
  return current.startsWith('-') ? { kind: 'words', words: ['--all'] } : { kind: 'pages' };
}

/** The option that the word before waits for the value of. */
function openOption(
  before: readonly string[],
  options: Options,
): { readonly name: string; readonly option: Option } | undefined {
  const word = before.at(-1) ?? '';
  const found = Object.entries(options).find(
    ([name, { alias }]) => word === dashed(name) || (alias !== undefined && word === `-${alias}`),
  );
  if (found === undefined || found[1].type === 'boolean') return undefined;
  return { name: found[0], option: found[1] };
}

function valuesOf(name: string, { choices }: Option): Asked {
  return choices === undefined ? namedBy(name) : { kind: 'words', words: choices };
}

/** The words for options that the line does not have yet. */
function optionWords(options: Options, before: readonly string[]): readonly string[] {
  const given = new Set(before);
  return Object.entries(options)
    .filter(([name, { hidden, type }]) => hidden !== true && (type === 'list' || !given.has(dashed(name))))
    .map(([name]) => dashed(name));
}

/** The words that are neither options nor their values. */
function looseWords(words: readonly string[], options: Options): readonly string[] {
  return words.filter(
    (word, i) => !word.startsWith('-') && openOption(words.slice(0, i), options) === undefined,
  );
}

function dashed(name: string): string {
  return `${name.length === 1 ? '-' : '--'}${name}`;
}
