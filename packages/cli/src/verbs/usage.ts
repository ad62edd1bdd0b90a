import { jsonText } from '../escape.ts';
import { sessionUsageJson, sumJson, usageTable } from '../output/usage.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const usage: Verb = defineVerb({
  command: 'usage [name]',
  group: 'Look',
  paged: true,
  summary: 'Add up the tokens of model calls',
  detail:
    'Counts the calls recorded on the own entries of a session, including entries that a rewind hides and imported calls, but not ' +
    'redacted entries. Usage of inherited entries and of the sessions that wrote its summaries is shown separately. The columns ' +
    'do not overlap: input excludes cache reads and writes, output excludes reasoning. The window is the number of tokens of the ' +
    'last call, input and output together. A cost is shown if it was recorded with the call.',
  examples: [
    ['tape usage', 'Show each session, and the total'],
    ['tape usage main --tree', 'Show main and its descendants'],
  ],
  arguments: { name: 'Session (default: all)' },
  options: { tree: { type: 'boolean', describe: 'Include descendants' } },
  run: async ({ name, tree = false }, { io, options, reading, answer }) => {
    const { readUsage } = await import('@tapedeck/runtime');
    const { addSums, noSum, readUsages } = await import('@tapedeck/runtime/internal');
    return await reading(async (store) => {
      const found =
        name === undefined
          ? await readUsages(store, store.sessions.list({ all: true, ...(tree && { after: null }) }), {
              tree,
            })
          : [await readUsage(store, needSession(store, name), { tree, beside: true })];
      const total = found.reduce((sum, own) => addSums(sum, own.tree ?? own), noSum);
      const [only] = found;
      if (name === undefined && options.jsonl === true) {
        for (const own of found) await io.out(`${jsonText(sessionUsageJson(own))}\n`);
        return 0;
      }
      await answer({
        json:
          name !== undefined && only !== undefined
            ? sessionUsageJson(only)
            : { sessions: found.map(sessionUsageJson), total: sumJson(total) },
        quiet: String(total.total),
        human: usageTable(found, {
          aligned: io.isTerminal,
          total: name === undefined || tree ? total : undefined,
        }),
      });
      return 0;
    });
  },
});
