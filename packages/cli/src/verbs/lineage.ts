import type { Context } from '../context.ts';
import { jsonText } from '../escape.ts';
import { doesExist } from '../file-home.ts';
import { compareTail, type FileStanding, reportStanding, standingFields } from '../graph-file.ts';
import { defineVerb, type Verb } from './verb.ts';

export const lineage: Verb = defineVerb({
  command: 'lineage <name>',
  group: 'Look',
  paged: true,
  summary: 'Show the ancestors and descendants of a session',
  detail:
    'Answers from the database. Compares the end of session_graph.jsonl with it: exits 5 when it differs. An edit before the end ' +
    'is found by graph --all and check alone. Without a database, reads the file.',
  examples: [['tape lineage main', 'Show the tree of main']],
  arguments: { name: 'Session' },
  run: async ({ name }, context) => {
    const { drawTree } = await import('@tapedeck/graph');
    const { lineOptions, printRows, treeJson } = await import('../output/lineage.ts');
    const { graph, id, standing } = await readAbout(name, context);
    const above = graph.ancestors(id);
    if (context.options.json === true || context.options.jsonl === true) {
      const own = graph.find(id);
      const tree = own === undefined ? {} : treeJson(graph, own);
      await context.io.out(
        `${jsonText({ ...tree, ancestors: above.map((node) => node.session), ...standingFields(standing) })}\n`,
      );
    } else await printRows(drawTree(graph, above.at(-1)?.id ?? id, lineOptions(context)), context);
    return reportStanding(standing, context);
  },
});

/** A session with its ancestors and descendants. */
async function readAbout(name: string, context: Context) {
  const { home, reading } = context;
  const { idIn, idOf, readFamily } = await import('../lineage.ts');
  if (home.server !== undefined || doesExist(home.db))
    return await reading(async (store) => {
      const id = idOf(name, store);
      const standing: FileStanding = await compareTail(store, home);
      return { graph: readFamily(store, id), id, standing };
    });
  const { openSessionGraph } = await import('@tapedeck/graph');
  const graph = openSessionGraph(home.graph);
  const { warnOfSkips } = await import('../output/lineage.ts');
  warnOfSkips(graph, context);
  const standing: FileStanding = { is: 'same' };
  return { graph, id: idIn(graph, name), standing };
}
