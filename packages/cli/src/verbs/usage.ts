import { sessionUsageJson, sumJson, usageTable } from '../output/usage.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const usage: Verb = defineVerb({
  command: 'usage [name]',
  group: 'Look',
  summary: 'Add up the tokens that model calls took',
  detail:
    "Counts what is recorded of each call on a session's own entries, those that a rewind hides too: what a fork inherited " +
    'is counted once, where it was written, and shown beside the sums of the session that was asked for. So is what its summaries took, ' +
    'each of which was written in a session of its own. What an import has of its calls counts, and what a redaction erased does not. ' +
    'The columns do not overlap: input is without what was read from a cache or written to it, output without reasoning. ' +
    'The window is what the last call was given and said. A cost is shown where the writer of a call recorded one.',
  examples: [
    ['tape usage', 'Every session, and all of them together'],
    ['tape usage main --tree', 'main, and all that was forked from it'],
  ],
  options: (y) =>
    y
      .positional('name', { type: 'string', describe: 'Session (default: all)' })
      .option('tree', { type: 'boolean', describe: 'Also what was forked from it, and from that' }),
  run: async ({ name, tree = false }, { io, options, reading, answer }) => {
    const { addSums, noSum, readUsage } = await import('@tapedeck/runtime/session-usage');
    return await reading(async (store) => {
      const all = name === undefined ? store.sessions({ all: true }) : [needSession(store, name)];
      const known = new Set(all.map(({ id }) => id));
      const asked = tree ? all.filter(({ parentId = '' }) => !known.has(parentId)) : all;
      const found: Awaited<ReturnType<typeof readUsage>>[] = [];
      for (const info of asked)
        found.push(await readUsage(store, info, { tree, beside: name !== undefined }));
      const total = found.reduce((sum, own) => addSums(sum, own.tree ?? own), noSum);
      const [only] = found;
      if (name === undefined && options.jsonl === true) {
        for (const own of found) await io.out(`${JSON.stringify(sessionUsageJson(own))}\n`);
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
