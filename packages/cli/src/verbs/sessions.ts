import { interruptedAmong } from '@tapedeck/runtime/internal';
import type { SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
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
import { sessionJson, stateOf, withSource } from '../output/session.ts';
import { sessionRow } from '../output/session-row.ts';
import { childrenTable, sessionsTable } from '../output/sessions.ts';
import { distinctIn, withRef } from '../reference.ts';
import { aboutOf, beganIn, type Placed, promptOf, saidWhere, withDescendants } from '../session/listing.ts';
import { needSession } from '../session/place.ts';
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
    'A session has its place by its last message, and in a tree among the children of its parent. An imported message counts with the time at its source, not that of the import. ' +
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
    tree: { type: 'boolean', describe: 'List sessions without a parent, each with its descendants' },
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
  conflicts: { tree: ['kind', 'sort', 'deleted'], deleted: ['all'] },
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
        await list(context, { found: withStates(store, first(limit, rows)) });
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
  store: SqliteTapeStore,
  { all, deleted, kind, tree, here, where, grep, sort, from, limit }: Selection,
  context: Context,
): Iterable<Placed> {
  const text = grep?.toLowerCase();
  const conditions = where === undefined ? undefined : conditionsIn(where, context.io.cwd);
  const isWanted = (info: SessionInfo) =>
    (text === undefined ||
      `${info.session} ${info.title ?? ''} ${promptOf(store, info)}`.toLowerCase().includes(text)) &&
    (here !== true || beganIn(store, info, context.io.cwd)) &&
    (conditions === undefined || saidWhere(store, info, conditions));
  const isFiltered = text !== undefined || here === true || conditions !== undefined;
  // What a session is about is read for the rows of a table alone: there are few.
  const having = { counts: true, titles: !isForPeople(context) && context.options.quiet !== true };
  const found = store.readSessions({
    ...having,
    ...(all === true && { all }),
    deleted: deleted === true,
    ...(tree === true && { roots: true }),
    ...(kind !== undefined && { kind }),
    ...(from !== undefined && { since: from }),
    ...(sort !== undefined && { order: sort }),
    ...(!isFiltered && limit < Number.POSITIVE_INFINITY && { limit: limit + 1 }),
  });
  let left = limit + 1;
  for (const info of found) {
    if (left <= 0) return;
    if (!isWanted(info)) continue;
    const below =
      tree === true
        ? store.sessions.list({ under: info.id, ...having, deleted: false, ...(all === true && { all }) })
        : [];
    const family = withDescendants(
      info,
      below.filter((one) => !isSummarizer(one)),
    ).slice(0, left);
    left -= family.length;
    yield* family;
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
  store: SqliteTapeStore,
  rows: readonly Placed[],
  { limit, context }: { readonly limit: number; readonly context: Context },
): Promise<void> {
  const shown = rows.slice(0, limit);
  const interrupted = await interruptedAmong(store, shown.map(({ info }) => info).filter(isActive));
  const stateIn = states(store, interrupted);
  const listed = shown.map(({ info, branch }) => ({
    info,
    branch,
    state: stateIn(info),
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
      const interrupted = await interruptedAmong(store, found.filter(isActive));
      const standing = await compareTail(store, context.home);
      const textOf = ({ id }: SessionInfo) => store.lineage.collect(id).text;
      if (found.length > 0 && isTable) {
        const stateIn = states(store, interrupted);
        const listed = found.map((info) => ({
          info,
          state: stateIn(info),
          text: textOf(info),
        }));
        await context.io.out(`${childrenTable(listed, { ...context, distinct: distinctIn(store) })}\n`);
        if (earlier > 0)
          context.status(
            `There ${earlier === 1 ? 'is 1 earlier child' : `are ${earlier} earlier children`} (see them with -n ${children.length})`,
          );
      } else await list(context, { found: withStates(store, found), textOf, standing });
      return reportStanding(standing, context);
    }),
});

/**
 * What sessions are in, for people: what runs, waits or was interrupted says more than that it is active, and so does it that
 * the tape is all that is left of an import.
 */
function states(store: SqliteTapeStore, interrupted: ReadonlySet<string>): (info: SessionInfo) => string {
  const owned = new Set(store.leases.list().map(({ id }) => id));
  const stateIn = (info: SessionInfo) => {
    const state = stateOf(info);
    if (interrupted.has(info.id)) return 'interrupted';
    if (state !== 'active' && state !== 'running') return state;
    // Calls without a result wait for an answer.
    return owned.has(info.id) ? 'busy' : info.settled < info.head ? 'waiting' : state;
  };
  return (info) => withSource(stateIn(info), info);
}

/** Whether to print a table for a terminal. */
function isForPeople({ io, options: { json, jsonl, quiet } }: Context): boolean {
  return io.isTerminal && json !== true && jsonl !== true && quiet !== true;
}

function isActive({ lifecycle }: SessionInfo): boolean {
  return lifecycle === 'active';
}

/** A session, whether its process died during a run, and what it is in. */
interface Seen {
  readonly info: SessionInfo;
  readonly isCut: boolean;
  readonly state: string;
}

/** The number of sessions whose states are looked up at a time. */
const seenMax = 200;

/** Looks up what sessions are in. */
async function* withStates(store: SqliteTapeStore, found: Iterable<SessionInfo>): AsyncGenerator<Seen> {
  let infos: SessionInfo[] = [];
  const seen = async () => {
    const interrupted = await interruptedAmong(store, infos.filter(isActive));
    const stateIn = states(store, interrupted);
    return infos.map((info) => ({ info, isCut: interrupted.has(info.id), state: stateIn(info) }));
  };
  for (const info of found) {
    infos.push(info);
    if (infos.length < seenMax) continue;
    yield* await seen();
    infos = [];
  }
  yield* await seen();
}

interface Listed {
  readonly found: Iterable<Seen> | AsyncIterable<Seen>;
  /** Called for each session by the forms that show results. */
  readonly textOf?: (info: SessionInfo) => string;
  readonly standing?: FileStanding;
}

/** Prints sessions as they are read. */
async function list(context: Context, { found, textOf, standing }: Listed): Promise<void> {
  const { io, options, style } = context;
  const asJson = ({ info, isCut }: Seen) => ({
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
      mapped(found, (one) => sessionRow(one, { style, textOf })),
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
