import { existsSync } from 'node:fs';
import { isSummarizer, type SessionInfo } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { sessionJson, sessionTable } from '../output/session.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const sessions: Verb = defineVerb({
  command: 'sessions',
  aliases: ['ls'],
  group: 'Look',
  summary: 'List sessions, the newest first',
  examples: [['tape sessions --json', 'All sessions, for a program']],
  options: (y) =>
    y
      .option('all', { type: 'boolean', describe: 'Also archived and ephemeral ones' })
      .option('kind', { type: 'string', requiresArg: true, describe: 'Only this kind: session, subagent, …' })
      .option('n', { type: 'number', requiresArg: true, describe: 'At most so many' }),
  run: async ({ all, kind, n }, context) => {
    if (!existsSync(context.home.db)) return await list(context, []);
    return await context.reading(async (store) =>
      list(
        context,
        store.sessions({
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
  summary: 'List the sessions that were forked from one, with their results',
  examples: [
    ['tape children main', 'In the order in which they were forked'],
    ['tape children main --all', 'Also those in which its summaries were written'],
  ],
  options: (y) =>
    y
      .positional('name', { type: 'string', demandOption: true, describe: 'The parent' })
      .option('all', { type: 'boolean', describe: 'Also those in which summaries were written' }),
  run: async ({ name, all }, context) =>
    await context.reading(async (store) => {
      const found = store
        .sessions({ parent: needSession(store, name).id, all: true })
        .filter((child) => all === true || !isSummarizer(child));
      return await list(context, found, ({ id }) => store.collect(id).text);
    }),
});

/** Prints sessions; `textOf` is called for each that is printed, in forms that have its result. */
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
