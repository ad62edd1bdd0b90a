import type { Context } from '../context.ts';
import { exit } from '../exit.ts';
import { reportForks, rewoundJson, undoneLine } from '../output/rewound.ts';
import { bringBack } from '../session/bring-back.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const undo: Verb = defineVerb({
  command: 'undo <place>',
  synonyms: ['unrewind'],
  group: 'Change',
  summary: 'Undo a rewind, compaction, anchor, handoff or merge',
  detail:
    'The view is then what it was before the act: the newest of them all, or the one at @POINT. An older one is never undone in its ' +
    'place, since that could hide it. An undone rewind hides the messages after it; another act is undone only if no ' +
    'message or anchor followed it. After an undone merge the child counts as not merged, and can be merged again or discarded. The undo is a rewind itself, so ' +
    'a second undo undoes the first. Files that a hook restored do not change. Refused while the session has an active run. ' +
    'The ULID of a deleted session brings that back, with all of its names, or not at all if something else has one now.',
  examples: [
    ['tape undo main', 'Undo the newest of these acts'],
    ['tape undo main@42', 'Undo the rewind or the merge at 42'],
  ],
  arguments: {
    place:
      'SESSION, SESSION@POINT of a rewind, summary, pruning, anchor, handoff or merge, or the ULID of a deleted session',
  },
  run: async ({ place }, context) =>
    await undoAt(place, { only: context.word === 'unrewind' ? 'rewind' : undefined }, context),
});

/** Undoes an act of a session and prints the receipt. `only` is for earlier names of the verb, which undo less. */
export async function undoAt(
  place: string,
  { only }: { readonly only: 'rewind' | 'compaction' | undefined },
  context: Context,
): Promise<number> {
  return await context.changing(async (store) => {
    const { undoSession } = await import('@tapedeck/runtime');
    const { session: ref, point } = readPlace(store, place);
    const info = needSession(store, ref);
    if (info.lifecycle === 'destroyed' && point === undefined && only === undefined)
      return await bringBack(store, info, context);
    const done = await undoSession(store, info.id, { at: point, only });
    const { session, seq, undone, act } = done;
    reportForks(done, context);
    await context.answer({
      json: { ...rewoundJson(done), undone, act },
      quiet: `${session}@${seq}`,
      human: context.inHome(undoneLine(done)),
    });
    return exit.done;
  });
}
