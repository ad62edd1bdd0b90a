import { UsageError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { traceJson, tracePlaces, traceText } from '../output/trace.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const trace: Verb = defineVerb({
  command: 'trace <place>',
  group: 'Look',
  summary: 'Follow an entry through merges, back and on',
  detail:
    "A merge's anchor or message leads back to the entries of the child that it was made of, and, where the child had merged others, " +
    'to theirs; so does the result of a tool call that started children. An entry of a child leads on to the merges that brought it to its ' +
    'parent and further up. For any entry: which forks have it without a copy.',
  examples: [
    ['tape trace main@8', 'Where this came from'],
    ['tape trace fix@12 --json', 'Where this went, for a program'],
  ],
  options: (y) => y.positional('place', { type: 'string', demandOption: true, describe: 'SESSION@POINT' }),
  run: async ({ place }, { reading, answer }) => {
    const { trace: traceEntry } = await import('@tapedeck/runtime/trace');
    return await reading(async (store) => {
      const { session, point } = readPlace(store, place);
      const info = needSession(store, session);
      if (point === undefined)
        throw new UsageError(`cannot trace '${info.name}': it is a session, not an entry`, {
          hint: `name an entry: tape trace ${info.name}@${info.head}`,
        });
      const traced = await traceEntry(store, info.id, point);
      await answer({
        json: traceJson(traced),
        quiet: tracePlaces(traced).join('\n'),
        human: traceText(traced),
      });
      return exit.done;
    });
  },
});
