import { interruptedAmong } from '@tapedeck/runtime/internal';
import type { SessionInfo } from '@tapedeck/tape';
import { isSummarizer } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { jsonText } from '../escape.ts';
import { compareTail, type FileStanding, reportStanding, standingFields } from '../graph-file.ts';
import { hasTapes } from '../home.ts';
import { timeOf } from '../input.ts';
import { otherRealms } from '../output/other-realms.ts';
import { sessionJson, sessionTable } from '../output/session.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const sessions: Verb = defineVerb({
  command: 'sessions',
  aliases: ['ls'],
  group: 'Look',
  paged: true,
  summary: 'List sessions, newest first',
  detail:
    'A session has its place by its last message. An imported message counts with the time at its source, not that of the import. ' +
    'Lists one realm (--base), and says on stderr how many sessions others have.',
  examples: [
    ['tape sessions --json', 'List sessions as JSON'],
    ['tape sessions --since 2026-11-21', 'List sessions with a message on that day or later'],
  ],
  options: {
    all: { type: 'boolean', describe: 'Include archived and ephemeral sessions' },
    kind: { type: 'string', describe: 'Only this kind: session, subagent, …' },
    since: {
      type: 'string',
      describe:
        'Only with a message at this time or later: 2026-11-21 or 2026-11-21T10:00, in UTC or with an offset, 2h or yesterday',
    },
    n: { type: 'number', describe: 'List at most N sessions' },
  },
  run: async ({ all, kind, n, since }, context) => {
    const from = since === undefined ? undefined : timeOf(since, context.io.now());
    if (since !== undefined && from === undefined)
      throw new UsageError(`cannot list sessions since '${since}': it is no time`, {
        hint: 'write it as 2026-11-21, 2026-11-21T10:00, 2h or yesterday',
      });
    if (!hasTapes(context.home)) return await list(context, { found: [] });
    return await context.reading(async (store) => {
      const found = store.sessions.list({
        ...(all === true && { all }),
        ...(kind !== undefined && { kind }),
        ...(n !== undefined && { limit: n }),
        ...(from !== undefined && { since: from }),
      });
      await list(context, { found, interrupted: await interruptedAmong(store, found.filter(isActive)) });
      for (const line of otherRealms(store)) context.status(line);
      return 0;
    });
  },
});

export const children: Verb = defineVerb({
  command: 'children <name>',
  group: 'Look',
  paged: true,
  summary: 'List the children of a session, with their results',
  detail:
    'Answers from the database. Compares the end of session_graph.jsonl with it: exits 5 when it differs. An edit before the end ' +
    'is found by graph and check alone.',
  examples: [
    ['tape children main', 'List children in fork order'],
    ['tape children main --all', 'Include the sessions that wrote its summaries'],
  ],
  arguments: { name: 'Parent session' },
  options: { all: { type: 'boolean', describe: 'Include the sessions that wrote summaries' } },
  run: async ({ name, all }, context) =>
    await context.reading(async (store) => {
      const found = store.sessions
        .list({ parent: needSession(store, name).id, all: true })
        .filter((child) => all === true || !isSummarizer(child));
      const interrupted = await interruptedAmong(store, found.filter(isActive));
      const standing = await compareTail(store, context.home);
      const textOf = ({ id }: SessionInfo) => store.lineage.collect(id).text;
      await list(context, { found, interrupted, textOf, standing });
      return reportStanding(standing, context);
    }),
});

function isActive({ lifecycle }: SessionInfo): boolean {
  return lifecycle === 'active';
}

interface Listed {
  readonly found: readonly SessionInfo[];
  readonly interrupted?: ReadonlySet<string>;
  /** Called for each session by the forms that show results. */
  readonly textOf?: (info: SessionInfo) => string;
  readonly standing?: FileStanding;
}

/** Prints sessions. */
async function list(context: Context, { found, interrupted, textOf, standing }: Listed): Promise<number> {
  const { io, options } = context;
  const isCut = ({ id }: SessionInfo) => interrupted?.has(id) === true;
  const asJson = (info: SessionInfo) => ({
    ...sessionJson(info),
    ...(isCut(info) && { interrupted: true }),
    ...(textOf !== undefined && { text: textOf(info) }),
    ...(standing !== undefined && standingFields(standing)),
  });
  if (options.jsonl === true) for (const info of found) await io.out(`${jsonText(asJson(info))}\n`);
  else if (options.json === true) await io.out(`${jsonText(found.map(asJson))}\n`);
  else if (options.quiet === true) for (const { session: name } of found) await io.out(`${name}\n`);
  else if (found.length > 0)
    await io.out(
      `${sessionTable(found, { terminal: io.isTerminal ? { columns: io.columns, now: io.now() } : undefined, isCut, textOf })}\n`,
    );
  else context.status('No sessions');
  return 0;
}
