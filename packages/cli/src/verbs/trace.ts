import { UsageError } from '../errors/kinds.ts';
import { commandLine } from '../escape.ts';
import { compareTail, reportStanding, standingFields } from '../graph-file.ts';
import { traceJson, tracePlaces, traceText } from '../output/trace.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const trace: Verb = defineVerb({
  command: 'trace <place>',
  group: 'Look',
  paged: true,
  summary: 'Trace an entry through merges, to its sources and its targets',
  detail:
    'For the anchor or message of a merge, or the result of a tool call that started children: shows the source entries of the ' +
    'child, and of its merged children in turn. For an entry of a child: shows the merges into its parent and further ancestors. ' +
    'For any entry: shows the forks that inherit it. Answers from the database, and compares the end of session_graph.jsonl ' +
    'with it: exits 5 when it differs. An edit before the end is found by graph --all and check alone.',
  examples: [
    ['tape trace main@8', 'Show the sources of a merge'],
    ['tape trace fix@12 --json', 'Show where an entry was merged, as JSON'],
  ],
  arguments: { place: 'SESSION@POINT' },
  run: async ({ place }, context) => {
    const { reading, answer, home, io } = context;
    const { trace: traceEntry } = await import('@tapedeck/runtime');
    return await reading(async (store) => {
      const { session, point } = readPlace(store, place);
      const info = needSession(store, session);
      if (point === undefined)
        throw new UsageError(`cannot trace '${info.session}': it is a session, not an entry`, {
          hint: `name an entry: ${commandLine('trace', [`${info.session}@${info.head}`])}`,
        });
      const standing = await compareTail(store, home);
      const traced = await traceEntry(store, info.id, point);
      await answer({
        json: { ...traceJson(traced), ...standingFields(standing) },
        quiet: tracePlaces(traced).join('\n'),
        human: traceText(traced, io.isTerminal ? io.columns : undefined),
      });
      return reportStanding(standing, context);
    });
  },
});
