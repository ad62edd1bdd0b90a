import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
import { countOf, graphProblems, problemJson, tapeProblems, unlessDamaged } from '../session/mend.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const verify: Verb = defineVerb({
  command: 'verify [name]',
  group: 'Trust',
  paged: true,
  summary: 'Prove that no entry was changed, removed or added',
  detail:
    'Recomputes every hash from the stored bytes. With a name: of that session and the entries that it inherits. Without: of all ' +
    'sessions, the lineage and the graph file. Exits 5 on a mismatch.',
  examples: [
    ['tape verify', 'Verify everything'],
    ['tape verify main', 'Verify a session and its ancestors'],
  ],
  arguments: { name: 'Session (default: all)' },
  run: async ({ name }, context) => {
    const { reading, answer, home, status } = context;
    return await reading(async (store) => {
      const ref = name === undefined ? undefined : needSession(store, name).id;
      const found = await tapeProblems(store, ref, context);
      const problems = found.filter(({ code }) => code !== 'not-here');
      const notHere = found.filter(({ code }) => code === 'not-here');
      const graph =
        ref === undefined
          ? await withProgress(context, (progress) =>
              unlessDamaged(problems, { g: 0, problems: [] }, () =>
                graphProblems(store, home, { onProgress: progress('Comparing lines of the graph file') }),
              ),
            )
          : undefined;
      problems.push(...(graph?.problems ?? []).map(problemJson));
      const { sessions, entries } = await countOf(store, problems, ref);
      const ok = problems.length === 0;
      await answer({
        json: {
          ok,
          sessions,
          entries,
          problems,
          ...(notHere.length > 0 && { not_here: notHere }),
          ...(graph?.behind !== undefined && { graph_lagging: true }),
        },
        quiet: ok ? 'ok' : 'damaged',
        human: ok
          ? `ok: ${counted(sessions, 'session')}, ${counted(entries, 'entry', 'entries')}, all hashes match`
          : [...problems.map((p) => `${p.code}: ${p.message}`), counted(problems.length, 'problem')].join(
              '\n',
            ),
      });
      for (const { message } of notHere) status(message);
      if (graph?.behind !== undefined) status(graph.behind.message);
      return ok ? exit.done : exit.damaged;
    });
  },
});
