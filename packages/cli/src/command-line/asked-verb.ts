import { quote } from '@tapedeck/tape/internal';
import { nearNames } from '@tapedeck/tape/store';
import { UsageError } from '../errors/kinds.ts';
import { commonOptions } from '../options/common.ts';
import { verbName, verbNamed, verbWords } from '../verbs/index.ts';
import type { Verb } from '../verbs/verb.ts';
import { meanings } from './meanings.ts';
import { verbAt } from './verb-in.ts';

/**
 * Loads the verb of a command line.
 * @param aliases the names that stand for verbs in the home
 * @throws UsageError with verbs of the same meaning, else with those of nearly the same letters
 */
export async function askedVerb(argv: readonly string[], aliases: readonly string[] = []): Promise<Verb> {
  const at = verbAt(argv);
  const word = argv[at];
  const option = unknownOption(argv.slice(0, word === undefined ? undefined : at));
  if (word === undefined) throw new UsageError(option ?? 'cannot run tape: a verb is missing');
  const verb = await verbNamed(word);
  if (verb !== undefined) return verb;
  // What was taken for its value may be the verb.
  if (option !== undefined) throw new UsageError(option);
  throw new UsageError(`cannot run ${quote(word)}: no such verb${meantVerbs(word, aliases)}`);
}

/** The verbs that an unknown word may mean, as the end of a message. */
export function meantVerbs(word: string, aliases: readonly string[]): string {
  const near = meaningOf(word) ?? nearWords(word, [...verbWords, 'help', ...aliases]);
  const meant = near.length > 0 ? near : meaningOf(nearNames(word, Object.keys(meanings), nearBy(word))[0]);
  return meant === undefined || meant.length === 0 ? '' : `; did you mean ${meant.join(' or ')}?`;
}

function meaningOf(word = ''): readonly string[] | undefined {
  return Object.hasOwn(meanings, word) ? meanings[word] : undefined;
}

/** How many letters of a word can be wrong. */
function nearBy({ length }: string): { readonly within: number } {
  return { within: length < 7 ? 1 : 2 };
}

/** Why the words before a verb cannot be used: one is an option that there is not. Undefined where all are known. */
function unknownOption(words: readonly string[]): string | undefined {
  const known = [...Object.keys(commonOptions), 'help', 'version'];
  for (const word of words) {
    const name = nameIn(word);
    if (/^--./.test(word) && !known.includes(name)) {
      const near = nearNames(name, known).map((one) => `--${one}`);
      const hint = near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`;
      return `cannot use --${name}: no such option${hint}`;
    }
    const [letter] = /^-[^-]/.test(word) ? word.slice(1).replace(/^[0hv]+/, '') : '';
    if (letter !== undefined) return `cannot use -${letter}: no such option`;
  }
  return undefined;
}

/** The name in the word of an option. */
function nameIn(word: string): string {
  return word.replace(/^--(?:no-)?/, '').replace(/=.*$/s, '');
}

/** The verbs and aliases that begin with a word, else those that differ in one letter, or in two of a long word. */
function nearWords(word: string, words: readonly string[]): readonly string[] {
  const begun = word.length < 2 ? [] : words.filter((name) => name.startsWith(word)).slice(0, 3);
  const near = begun.length > 0 ? begun : nearNames(word, words, nearBy(word));
  return [...new Set(near.map((name) => verbName(name) ?? name))];
}
