import type { Target, View } from '@tapedeck/tape';
import { continueText, noAnswer, noResult, noStart, type Selection } from '@tapedeck/tape/internal';
import type { CopiedSession } from '../copying-model.ts';
import { type Look, policyName } from './looks.ts';
import { wordsOf } from './words.ts';

/** The cases that a view is an example of: a check that never meets one of these proves nothing about it. */
export function situations(
  { messages }: View,
  {
    json,
    shown,
    look,
    target,
    session,
  }: { json: string; shown: Selection; look: Look; target: Target; session: CopiedSession },
): readonly string[] {
  const { policy, at } = look;
  const { start, entries, pruned, omitted } = shown;
  const shows = {
    'as of an earlier position': at < session.head,
    'as of an inherited position': at <= session.base,
    'of a fork': session.parent !== undefined,
    'of a fork of a fork': session.depth > 1,
    'with inherited entries': entries.some(({ inherited }) => inherited),
    'of which a rewind hides a part': session.seen(at).length < at - session.floor,
    'that begins with a state': wordsOf('state', json).length > 0,
    'with a kept tail': start?.mark === 'boundary' && (entries[0]?.seq ?? start.seq) < start.seq,
    'with the intention': entries.some(({ name, inherited }) => name === 'intention' && !inherited),
    'with what a merge brought': entries.some(
      ({ meta }) => meta.source === 'merge' && meta.context !== false,
    ),
    'with an output left out': entries.some(({ seq }) => pruned.has(seq)) && json.includes('<output pruned'),
    'with a message left out': omitted.size > 0,
    'with a call that nothing answered': json.includes(noResult),
    'where the user begins': json.includes(noStart),
    'where the user tells to go on': json.includes(continueText),
    'where an answer is put in': json.includes(noAnswer),
    'with what only its reader can read': json.includes('sealed:'),
    'with a call that its reader ran': json.includes('"providerExecuted":true'),
    'with a call that another provider ran': json.includes('was called by the provider'),
    'with calls side by side': messages.some(({ role, content }) => role === 'tool' && content.length > 1),
    'of nothing': messages.length === 0,
  };
  const names = Object.entries(shows).flatMap(([name, holds]) => (holds ? [`a view ${name}`] : []));
  return [...names, `a view ${policyName(policy)}`, `a view for ${JSON.stringify(target)}`];
}
