import { existsSync } from 'node:fs';
import type { SessionInfo } from '@tapedeck/tape';
import { isSummarizer } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { sessionJson, sessionTable } from '../output/session.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const sessions: Verb = defineVerb({
  command: 'sessions',
  aliases: ['ls'],
  group: 'Look',
  summary: 'List sessions, newest first',
  examples: [['tape sessions --json', 'List sessions as JSON']],
  options: (y) =>
    y
      .option('all', { type: 'boolean', describe: 'Include archived and ephemeral sessions' })
      .option('kind', { type: 'string', requiresArg: true, describe: 'Only this kind: session, subagent, …' })
      .option('n', { type: 'number', requiresArg: true, describe: 'List at most N sessions' }),
  run: async ({ all, kind, n }, context) => {
    if (!existsSync(context.home.db)) return await list(context, []);
    return await context.reading(async (store) =>
      list(
        context,
        store.sessions.list({
          ...(all === true && { all }),
          ...(kind !== undefined && { kind }),
          ...(n !== undefined && { limit: n }),
        }),
      ),
    );
  },
});

export const children: Verb = defineVerb({
  command: 'children <name>',
  group: 'Look',
  summary: 'List the children of a session, with their results',
  examples: [
    ['tape children main', 'List children in fork order'],
    ['tape children main --all', 'Include the sessions that wrote its summaries'],
  ],
  options: (y) =>
    y
      .positional('name', { type: 'string', demandOption: true, describe: 'Parent session' })
      .option('all', { type: 'boolean', describe: 'Include the sessions that wrote summaries' }),
  run: async ({ name, all }, context) =>
    await context.reading(async (store) => {
      const found = store.sessions
        .list({ parent: needSession(store, name).id, all: true })
        .filter((child) => all === true || !isSummarizer(child));
      return await list(context, found, ({ id }) => store.lineage.collect(id).text);
    }),
});

/** Prints sessions. Forms that show results call `textOf` for each session. */
async function list(
  context: Context,
  found: readonly SessionInfo[],
  textOf?: (info: SessionInfo) => string,
): Promise<number> {
  const { io, options } = context;
  const asJson = (info: SessionInfo) => ({
    ...sessionJson(info),
    ...(textOf !== undefined && { text: textOf(info) }),
  });
  if (options.jsonl === true) for (const info of found) await io.out(`${JSON.stringify(asJson(info))}\n`);
  else if (options.json === true) await io.out(`${JSON.stringify(found.map(asJson))}\n`);
  else if (options.quiet === true) for (const { name } of found) await io.out(`${name}\n`);
  else if (found.length > 0) await io.out(`${sessionTable(found, { aligned: io.isTerminal, textOf })}\n`);
  else context.status('No sessions');
  return 0;
}
