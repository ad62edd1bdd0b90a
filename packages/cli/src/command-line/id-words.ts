import { sessionName } from '@tapedeck/tape';
import { UsageError } from '../errors/kinds.ts';
import { nameOf, type Verb } from '../verbs/verb.ts';

/** A verb whose first argument is a session. */
const ofSession = /^\S+ [<[](?:name|place|parent|child|names\.\.)[\]>]/;

/**
 * Puts the name of an id in the place of `--id TEXT`: as the first argument of the verb, which names its session.
 * Without `--id` the words return unchanged.
 * @param words a command line with the verb first
 * @throws UsageError for a verb without a session, and for an id that is missing, given twice or no UTF-8
 */
export function withSessionOfId(words: readonly string[], verb: Verb): readonly string[] {
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
  if (!ofSession.test(verb.command))
    throw new UsageError(`cannot use --id: tape ${nameOf(verb)} takes no session as its first argument`);
  // An id is exact: one that is nearly another is no slip.
  const isNew = Object.hasOwn(verb.options ?? {}, 'new') ? ['--new'] : [];
  return rest.toSpliced(1, 0, ...isNew, sessionName(id));
}
