import { sessionName } from '@tapedeck/tape';
import { UsageError } from '../errors/kinds.ts';
import { nameOf, type Verb } from '../verbs/verb.ts';

/** Options before a verb that take the next word as their value. */
const withValue: ReadonlySet<string> = new Set(['--home', '--base', '--durability']);
/** A verb whose first argument is a session. */
const ofSession = /^\S+ [<[](?:name|place|parent|child|names\.\.)[\]>]/;

/**
 * Puts the name of an id in the place of `--id TEXT`: as the first argument of the verb, which names its session.
 * Without `--id` the words return unchanged.
 * @throws UsageError for a verb without a session, and for an id that is missing, given twice or no UTF-8
 */
export function withSessionOfId(words: readonly string[], verbs: readonly Verb[]): readonly string[] {
  const rest: string[] = [];
  const ids: string[] = [];
  for (let i = 0; i < words.length; i += 1) {
    const word = words[i] ?? '';
    if (word === '--id') {
      const value = words[i + 1];
      if (value === undefined) throw new UsageError('cannot use --id: it has no value');
      ids.push(value);
      i += 1;
    } else if (word.startsWith('--id=')) ids.push(word.slice('--id='.length));
    else rest.push(word);
  }
  const [id, another] = ids;
  if (id === undefined) return words;
  if (another !== undefined) throw new UsageError('cannot use --id more than once');
  if (id === '') throw new UsageError('cannot use --id: it is empty');
  // Node.js has replaced bytes that are no UTF-8, so that several ids would have one name.
  if (id.includes('\ufffd')) throw new UsageError('cannot use --id: it is not UTF-8');
  const at = verbIn(rest);
  const verb = verbs.find((one) =>
    [nameOf(one), ...(one.aliases ?? []), ...(one.synonyms ?? [])].includes(rest[at] ?? ''),
  );
  // An unknown verb is reported as such.
  if (verb === undefined) return rest;
  if (!ofSession.test(verb.command))
    throw new UsageError(`cannot use --id: tape ${nameOf(verb)} takes no session as its first argument`);
  return rest.toSpliced(at + 1, 0, sessionName(id));
}

/** The index of the verb: the first word that is neither an option nor its value. */
function verbIn(words: readonly string[]): number {
  for (let i = 0; i < words.length; i += 1) {
    const word = words[i] ?? '';
    if (withValue.has(word)) i += 1;
    else if (!word.startsWith('-')) return i;
  }
  return words.length;
}
