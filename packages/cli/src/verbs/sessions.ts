import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { isSummarizer } from '@tapedeck/tape/internal';
import type { SessionOrder } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { jsonText } from '../escape.ts';
import { compareTail, type FileStanding, reportStanding, standingFields } from '../graph-file.ts';
import { hasTapesToRead, isLarge } from '../home.ts';
import { timeOf } from '../input.ts';
import { printArray, printLines } from '../output/array.ts';
import { otherRealms } from '../output/other-realms.ts';
import { sessionJson } from '../output/session.ts';
import { sessionRow } from '../output/session-row.ts';
import { childrenTable, sessionsTable } from '../output/sessions.ts';
import { distinctIn, withRef } from '../reference.ts';
import {
  aboutOf,
  beganIn,
  drawn,
  familyOf,
  inFamilies,
  isListed,
  mentions,
  type Placed,
  saidWhere,
} from '../session/listing.ts';
import { needSession } from '../session/place.ts';
import { type Stated, stated, statedInParts } from '../session/stated.ts';
import { conditionsIn, whereHelp } from '../transcript/where.ts';
import { defineVerb, type Verb } from './verb.ts';

/** Number of sessions that a terminal shows without `-n`. */
const shownMax = 50;

export const sessions: Verb = defineVerb({
  command: 'sessions',
  aliases: ['ls'],
  group: 'Look',
  paged: true,
  summary: 'List sessions, newest first',
  detail:
    'A session has its place by its last message, and in a tree among the children of its parent; one whose parent is not listed is below its nearest ancestor that is. An imported message counts with the time at its source, not that of the import. ' +
    `A terminal shows ${shownMax} unless -n is given. In a pipe a row has whole fields between tabs: session, kind, state, head, ` +
    'parent with the anchor, last message, messages, children, tokens, and what it is about. ' +
    'Lists one realm (--base), and says on stderr how many sessions others have.',
  examples: [
    ['tape sessions --json', 'List sessions as JSON'],
    ['tape sessions --since 2026-11-21', 'List sessions with a message on that day or later'],
    ['tape sessions --tree', 'List sessions with their children below them'],
    ['tape sessions --here --grep release', 'List sessions of this directory about a word'],
    ['tape sessions --where branch=release', 'List sessions in which something was said on a branch'],
  ],
  options: {
    all: { type: 'boolean', describe: 'Include archived and ephemeral sessions' },
    deleted: { type: 'boolean', describe: 'List deleted sessions, with their ULIDs, which undo brings back' },
    kind: { type: 'string', describe: 'Only this kind: session, subagent, …' },
    tree: { type: 'boolean', describe: 'List sessions below their parents' },
    here: { type: 'boolean', describe: 'Only sessions that began to run in this directory or below it' },
    where: { type: 'string', describe: whereHelp },
    grep: { type: 'string', describe: 'Only with this text in the name, the title or the first prompt' },
    sort: {
      type: 'string',
      choices: ['last', 'created', 'name', 'messages', 'tokens'],
      describe: 'Order: by the last message (default), creation, name, or the most messages or tokens',
    },
    since: {
      type: 'string',
      describe:
        'Only with a message at this time or later: 2026-11-21 or 2026-11-21T10:00, in UTC or with an offset, 2h or yesterday',
    },
    n: { type: 'number', describe: 'List at most N sessions' },
  },
  conflicts: { tree: ['sort', 'deleted'], deleted: ['all'] },
  run: async (args, context) => {
    const { since } = args;
    const from = since === undefined ? undefined : timeOf(since, context.io.now());
    if (since !== undefined && from === undefined)
      throw new UsageError(`cannot list sessions since '${since}': it is no time`, {
        hint: 'write it as 2026-11-21, 2026-11-21T10:00, 2h or yesterday',
      });
    if (!hasTapesToRead(context.home)) {
      await list(context, { found: [] });
      return 0;
    }
    return await context.reading(async (store) => {
      const isTable = isForPeople(context);
      const limit = args.n ?? (isTable ? shownMax : Number.POSITIVE_INFINITY);
      const rows = select(store, { ...args, from, limit }, context);
      if (isTable) await show(store, [...rows], { limit, context });
      else {
        if (limit === Number.POSITIVE_INFINITY && isLarge(context.home)) context.io.saveMemory();
        const found = statedInParts(store, first(limit, rows));
        await list(context, { found, about: (info) => aboutOf(store, info) });
      }
      for (const line of otherRealms(store)) context.status(line);
      return 0;
    });
  },
});

interface Selection {
  readonly all: boolean | undefined;
  readonly deleted: boolean | undefined;
  readonly kind: string | undefined;
  readonly tree: boolean | undefined;
  readonly here: boolean | undefined;
  readonly where: string | undefined;
  readonly grep: string | undefined;
  readonly sort: SessionOrder | undefined;
  readonly from: number | undefined;
  readonly limit: number;
}

/** The sessions to list, and one more than the limit where there are more. */
function* select(
  store: HomeStore,
  { all, deleted, kind, tree, here, where, grep, sort, from, limit }: Selection,
  context: Context,
): Iterable<Placed> {
  const conditions = where === undefined ? undefined : conditionsIn(where, context.io);
  const isWanted = (info: SessionInfo) =>
    (grep === undefined || mentions(store, info, grep)) &&
    (here !== true || beganIn(store, info, context.io.cwd)) &&
    (conditions === undefined || saidWhere(store, info, conditions));
  const isFiltered = grep !== undefined || here === true || conditions !== undefined;
  // What a session is about is read for the rows of a table alone: there are few.
  const having = { counts: true, titles: !isForPeople(context) && context.options.quiet !== true };
  let left = limit + 1;
  if (tree === true) {
    const isIn = (info: SessionInfo) =>
      isListed(info, { all: all === true }) &&
      (kind === undefined || info.kind === kind) &&
      (from === undefined || (info.lastMessageAt ?? info.createdAt) >= from) &&
      isWanted(info);
    for (const root of store.readSessions({ ...having, ...inFamilies, roots: true })) {
      if (left <= 0) return;
      const family = drawn(familyOf(store, root, having), isIn).slice(0, left);
      left -= family.length;
      yield* family;
    }
    return;
  }
  const found = store.readSessions({
    ...having,
    ...(all === true && { all }),
    deleted: deleted === true,
    ...(kind !== undefined && { kind }),
    ...(from !== undefined && { since: from }),
    ...(sort !== undefined && { order: sort }),
    ...(!isFiltered && limit < Number.POSITIVE_INFINITY && { limit: limit + 1 }),
  });
  for (const info of found) {
    if (left <= 0) return;
    if (!isWanted(info)) continue;
    left -= 1;
    yield { info, branch: '' };
  }
}

/** The first rows of more than a limit. */
function* first(limit: number, rows: Iterable<{ readonly info: SessionInfo }>): Iterable<SessionInfo> {
  let left = limit;
  for (const { info } of rows) {
    if (left <= 0) return;
    left -= 1;
    yield info;
  }
}

/** Shows rows in a table. */
async function show(
  store: HomeStore,
  rows: readonly Placed[],
  { limit, context }: { readonly limit: number; readonly context: Context },
): Promise<void> {
  const shown = rows.slice(0, limit);
  const states = await stated(
    store,
    shown.map(({ info }) => info),
  );
  const listed = states.map(({ info, state }, i) => ({
    info,
    branch: shown[i]?.branch ?? '',
    state,
    about: aboutOf(store, info),
  }));
  if (listed.length > 0)
    await context.io.out(`${sessionsTable(listed, { ...context, distinct: distinctIn(store) })}\n`);
  else context.status('No sessions');
  if (rows.length > limit) context.status(`There are more sessions (see them with -n ${limit * 4})`);
}

export const children: Verb = defineVerb({
  command: 'children <name>',
  group: 'Look',
  paged: true,
  summary: 'List the children of a session, with their results',
  detail:
    'Answers from the database. Compares the end of session_graph.jsonl with it: exits 5 when it differs. An edit before the end ' +
    `is found by graph --all and check alone. A terminal shows the last ${shownMax} unless -n is given.`,
  examples: [
    ['tape children main', 'List children in fork order'],
    ['tape children main --all', 'Include the sessions that wrote its summaries'],
  ],
  arguments: { name: 'Parent session' },
  options: {
    all: { type: 'boolean', describe: 'Include the sessions that wrote summaries' },
    n: { type: 'number', describe: 'List the last N children' },
  },
  run: async ({ name, all, n }, context) =>
    await context.reading(async (store) => {
      const children = store.sessions
        .list({ parent: needSession(store, name).id, all: true, deleted: false })
        .filter((child) => all === true || !isSummarizer(child));
      const isTable = isForPeople(context);
      const earlier = Math.max(0, children.length - (n ?? (isTable ? shownMax : children.length)));
      const found = children.slice(earlier);
      const standing = await compareTail(store, context.home);
      const textOf = ({ id }: SessionInfo) => store.lineage.collect(id).text;
      if (found.length > 0 && isTable) {
        const states = await stated(store, found);
        const listed = states.map(({ info, state }) => ({ info, state, text: textOf(info) }));
        await context.io.out(`${childrenTable(listed, { ...context, distinct: distinctIn(store) })}\n`);
        if (earlier > 0)
          context.status(
            `There ${earlier === 1 ? 'is 1 earlier child' : `are ${earlier} earlier children`} (see them with -n ${children.length})`,
          );
      } else await list(context, { found: statedInParts(store, found), textOf, standing });
      return reportStanding(standing, context);
    }),
});

/** Whether to print a table for a terminal. */
function isForPeople({ io, options: { json, jsonl, quiet } }: Context): boolean {
  return io.isTerminal && json !== true && jsonl !== true && quiet !== true;
}

interface Listed {
  readonly found: Iterable<Stated> | AsyncIterable<Stated>;
  /** Called for each session by the forms that show results. */
  readonly textOf?: (info: SessionInfo) => string;
  /** What a row says of a session, where JSON says its title. */
  readonly about?: (info: SessionInfo) => string;
  readonly standing?: FileStanding;
}

/** Prints sessions as they are read. */
async function list(context: Context, { found, textOf, about, standing }: Listed): Promise<void> {
  const { io, options, style } = context;
  const asJson = ({ info, isCut }: Stated) => ({
    ...sessionJson(info),
    ...(isCut && { interrupted: true }),
    ...(textOf !== undefined && { text: textOf(info) }),
    ...(standing !== undefined && standingFields(standing)),
  });
  if (options.jsonl === true)
    await printLines(
      io,
      mapped(found, (one) => jsonText(asJson(one))),
    );
  else if (options.json === true) await printArray(io, mapped(found, asJson));
  else if (options.quiet === true)
    await printLines(
      io,
      mapped(found, ({ info }) => withRef(info).session),
    );
  else if (
    (await printLines(
      io,
      mapped(found, (one) => {
        const title = one.info.title ?? about?.(one.info) ?? '';
        return sessionRow({ ...one, info: { ...one.info, title } }, { style, textOf });
      }),
    )) === 0
  )
    context.status('No sessions');
}

async function* mapped<A, B>(
  values: Iterable<A> | AsyncIterable<A>,
  act: (value: A) => B,
): AsyncGenerator<B> {
  for await (const value of values) yield act(value);
}
