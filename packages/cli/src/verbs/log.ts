import { type Entry, type HomeStore, type Point, type SessionInfo, TapeError } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { jsonText, safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { timeOf } from '../input.ts';
import { printArray } from '../output/array.ts';
import { entryJson } from '../output/entry.ts';
import { needSession, pointIn, readPlace, readRange } from '../session/place.ts';
import { readEntries, type Selection } from '../transcript/read.ts';
import type { Transcript } from '../transcript/transcript.ts';
import { isWanted } from '../transcript/wanted.ts';
import { conditionsIn, whereHelp } from '../transcript/where.ts';
import { defineVerb, type Verb } from './verb.ts';

interface Options {
  readonly place: string | undefined;
  readonly derived: boolean | undefined;
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly since: string | undefined;
  readonly until: string | undefined;
  readonly kind: string | undefined;
  readonly role: string | undefined;
  readonly tool: string | undefined;
  readonly grep: string | undefined;
  readonly by: string | undefined;
  readonly where: string | undefined;
  readonly own: boolean | undefined;
  readonly all: boolean | undefined;
  readonly hidden: boolean | undefined;
  readonly oneline: boolean | undefined;
  readonly full: boolean | undefined;
  readonly times: 'relative' | 'iso' | undefined;
  readonly stat: boolean | undefined;
  readonly graph: boolean | undefined;
  readonly n: number | undefined;
  readonly follow: boolean | undefined;
}

export const log: Verb = defineVerb({
  command: 'log [place]',
  group: 'Look',
  paged: true,
  summary: 'Show the conversation of a session',
  detail:
    'Shows prompts, answers, calls with their results, anchors, merges, and the forks where they left. An arrow (↑) marks ' +
    'inherited entries, and with --hidden a cross (×) those that a rewind hides. --json, --jsonl and --quiet print all entries ' +
    'of the selection, those outside of the conversation too; so does --format, where {text} is the text of an entry.',
  examples: [
    ['tape log main -n 20', 'Show the last 20 rows'],
    ['tape log main@task-start', 'Show the conversation up to an anchor'],
    ['tape log main@3..5', 'Show the conversation from a position to another'],
    ['tape log main --since task-start --jsonl', 'Print the entries after an anchor as JSON lines'],
    ['tape log main --since "2 days ago" --role user', 'Show the prompts of the last two days'],
    ['tape log main --tool Bash --grep error', 'Show the calls of a tool that mention an error'],
    [
      'tape log main --where branch=release,model=claude-*',
      'Show what models of one family said on a branch',
    ],
    ['tape log main --follow', 'Show the conversation, then what any process adds'],
    ['tape log main --stat', 'Sum up messages, calls, tokens, children and files'],
    ['tape log main --graph', 'Draw the session and its descendants, with their anchors'],
    ['tape log --derived', 'List what imports concluded, of all sessions'],
  ],
  arguments: {
    place: 'SESSION, SESSION@POINT for the conversation up to there, or SESSION@POINT..POINT, both included',
  },
  options: {
    from: { type: 'number', describe: 'First position' },
    to: { type: 'number', describe: 'Last position' },
    since: {
      type: 'string',
      describe:
        'Only after this point (an anchor, @SEQ, @-3), or from this time on: 2026-11-21T10:00, 2h, yesterday (at the source, for an import)',
    },
    until: { type: 'string', describe: 'Only up to this point or time' },
    kind: {
      type: 'string',
      describe: 'Only entries of this kind: message, tool-call, tool-result, anchor, event, …',
    },
    role: {
      type: 'string',
      choices: ['user', 'assistant', 'tool'],
      describe: 'Only prompts, answers or tool results',
    },
    tool: { type: 'string', describe: 'Only calls of this tool, and their results' },
    grep: { type: 'string', describe: 'Only entries with this text, in either case' },
    by: { type: 'string', describe: 'Only what this session sent: its merged results and its messages' },
    where: { type: 'string', describe: whereHelp },
    own: { type: 'boolean', negatable: true, describe: 'Omit inherited entries; --no-own: show them alone' },
    all: {
      type: 'boolean',
      describe:
        'Show what is outside of the conversation too: events, reminders, records of imports, hidden entries',
    },
    hidden: { type: 'boolean', describe: 'Show the entries that a rewind hides' },
    n: {
      type: 'number',
      describe:
        'Show the last N rows: items, forks and rewinds, each with all its lines; with --derived the last N edges',
    },
    oneline: { type: 'boolean', describe: 'Show each item on one line, cut to the width of the terminal' },
    full: { type: 'boolean', describe: 'Show whole texts, arguments and results' },
    times: {
      type: 'string',
      choices: ['relative', 'iso'],
      describe: 'How to show times (default: relative on a terminal without --full)',
    },
    stat: {
      type: 'boolean',
      describe: 'Sum up the entries: messages, calls, tokens, files; and the children',
    },
    graph: { type: 'boolean', describe: 'Draw the session and its descendants, with their anchors' },
    derived: {
      type: 'boolean',
      describe:
        'List the edges that an import concluded, with their evidence; without a place those of all sessions',
    },
    follow: { type: 'boolean', alias: 'f', describe: 'Show new entries as they are written, until Ctrl-C' },
  },
  conflicts: {
    graph: ['json', 'jsonl', 'stat'],
    follow: ['json', 'to', 'until', 'graph', 'stat'],
    oneline: ['full'],
    // It lists edges, and no entries: what selects these, or says how they look, has nothing to work on.
    derived: [
      ...['graph', 'stat', 'follow', 'from', 'to', 'since', 'until', 'kind', 'role', 'tool', 'grep', 'by'],
      ...['where', 'own', 'all', 'hidden', 'oneline', 'full', 'times'],
    ],
  },
  run: async (args, context) => {
    if (args.kind !== undefined && !kinds.has(args.kind) && !/^x-[a-z0-9-]+$/.test(args.kind))
      throw new UsageError(
        `cannot list entries of kind '${args.kind}': it must be ${[...kinds].join(', ')} or x-…`,
      );
    if (args.place === undefined && args.derived !== true)
      throw new UsageError('cannot show a log: no session is named', { hint: 'see: tape log --help' });
    return await context.reading(async (store) => {
      const { place } = args;
      if (args.derived === true || place === undefined)
        return await listDerived(store, { place, last: args.n }, context);
      const range = readRange(store, place);
      const { session, point } =
        range === undefined ? readPlace(store, place) : { ...range, point: `@${range.to}` };
      const info = needSession(store, session);
      if (point !== undefined) assertEndsOnce({ ...args, place });
      if (range !== undefined) assertBeginsOnce({ ...args, place });
      if (args.graph === true) return await draw(store, info, context);
      const from = range?.from ?? args.from;
      const selection = selectionOf(store, info, {
        ...args,
        from,
        point,
        now: context.io.now(),
        io: context.io,
      });
      if (args.stat === true) return await sumUp(store, info, selection, context);
      const printed = await printer(store, info, args, context);
      // `--follow` prints the entries that are written from here on.
      await printed.show(selection);
      return args.follow === true ? await follow(store, { info, selection, printed }, context) : 0;
    });
  },
});

const kinds: ReadonlySet<string> = new Set([
  'message',
  'tool-call',
  'tool-result',
  'anchor',
  'compaction',
  'rewind',
  'redaction',
  'result',
  'status',
  'event',
  'ui',
]);

/**
 * Refuses what conflicts with `SESSION@POINT`, which ends the selection.
 * @throws UsageError
 */
function assertEndsOnce({ place = '', to, until, follow, graph }: Options): void {
  const named = Object.entries({ to, until, follow, graph }).find(([, value]) => value !== undefined);
  if (named !== undefined)
    throw new UsageError(`cannot use --${named[0]} with the point of '${place}': it ends the selection`);
}

/**
 * Refuses what conflicts with `SESSION@A..B`, which also begins the selection.
 * @throws UsageError
 */
function assertBeginsOnce({ place = '', from, since }: Options): void {
  const named = from !== undefined ? 'from' : since !== undefined ? 'since' : undefined;
  if (named !== undefined)
    throw new UsageError(`cannot use --${named} with the range of '${place}': it begins the selection`);
}

/** Lists the derived edges of a session, or of all. */
async function listDerived(
  store: HomeStore,
  { place, last }: { readonly place: string | undefined; readonly last: number | undefined },
  { io, options, status }: Context,
): Promise<number> {
  const { derivedRows, derivedText } = await import('../session/derived-edges.ts');
  const infos =
    place === undefined ? store.readSessions({ all: true, deleted: false }) : [needSession(store, place)];
  let count = 0;
  const all = Iterator.from(infos).flatMap((info) => derivedRows(store, info));
  const rows = last === undefined ? all : Iterator.from(lastOf(all, last));
  const counted = rows.map((row) => {
    count += 1;
    return { ...row };
  });
  if (options.json === true) await printArray(io, counted);
  else
    for (const row of counted)
      await io.out(
        options.jsonl === true
          ? `${jsonText(row)}\n`
          : options.quiet === true
            ? `${row.session}\n`
            : `${safe(derivedText(row))}\n`,
      );
  if (count === 0 && last !== 0) status('No derived edges');
  return 0;
}

/** The last of some, in their order. */
function lastOf<T>(all: Iterable<T>, count: number): readonly T[] {
  const kept: T[] = [];
  for (const one of all) {
    kept.push(one);
    if (kept.length > count) kept.shift();
  }
  return kept;
}

async function draw(store: HomeStore, { id }: SessionInfo, context: Context): Promise<number> {
  const { drawLog } = await import('../output/lanes.ts');
  const { readFamily } = await import('../lineage.ts');
  for (const row of drawLog(readFamily(store, id), { store, session: id }, context))
    await context.io.out(`${row}\n`);
  return 0;
}

async function sumUp(
  store: HomeStore,
  info: SessionInfo,
  selection: Selection,
  { answer, io }: Context,
): Promise<number> {
  const { childStates, summaryJson, summaryOf, summaryText } = await import('../transcript/summary.ts');
  const summary = summaryOf(readEntries(store, info, selection));
  const children = childStates(store, info.id);
  await answer({
    json: summaryJson(info, summary, children),
    quiet: String(summary.entries),
    human: summaryText(summary, children, io.isTerminal ? io.columns : undefined),
  });
  return 0;
}

/** What prints a log: for programs all entries of a selection, for people the transcript. */
async function printer(
  store: HomeStore,
  info: SessionInfo,
  { oneline, full, all, hidden, kind, times, grep }: Options,
  context: Context,
): Promise<Transcript> {
  const { io, options } = context;
  if (options.json === true || options.jsonl === true || options.quiet === true) {
    const show = async (entries: Iterable<Entry>) => {
      if (options.json === true) return await printArray(io, Iterator.from(entries).map(entryJson));
      for (const entry of entries)
        await io.out(options.jsonl === true ? `${jsonText(entryJson(entry))}\n` : `${entry.seq}\n`);
    };
    return {
      show: async (selection) => await show(readEntries(store, info, selection)),
      add: async (entry, selection) => (isWanted(entry, selection) ? await show([entry]) : undefined),
    };
  }
  const { openTranscript } = await import('../transcript/transcript.ts');
  // An entry of a kind that is asked for is shown wherever it is: a rewind is part of what it hides.
  const isWhole = all === true || kind !== undefined;
  const form = {
    oneline: oneline === true,
    full: full === true,
    all: isWhole,
    hidden: isWhole || hidden === true,
    times,
    find: grep,
  };
  return openTranscript(store, info, form, context);
}

/** Shows the entries that any process writes from here on. */
async function follow(
  store: HomeStore,
  {
    info,
    selection,
    printed,
  }: { readonly info: SessionInfo; readonly selection: Selection; readonly printed: Transcript },
  { io }: Context,
): Promise<number> {
  const { tail } = await import('@tapedeck/runtime');
  for await (const fresh of tail(store, info.id, { from: info.head + 1, signal: io.signal }))
    if (fresh.type === 'entry') await printed.add(fresh.entry, selection);
  return exit.interrupted;
}

/** The entries that the options select. */
function selectionOf(
  store: HomeStore,
  info: SessionInfo,
  args: Options & { readonly point: Point | undefined; readonly now: number; readonly io: Context['io'] },
): Selection {
  const { floor, head } = info;
  const {
    from = 1,
    to = head,
    since,
    until,
    kind,
    role,
    tool,
    grep,
    by,
    where,
    own,
    n,
    point,
    now,
    io,
  } = args;
  const begin = boundOf(store, info, since, now);
  const end =
    point === undefined
      ? boundOf(store, info, until, now)
      : { seq: store.entries.resolve(info.id, point), time: undefined };
  return {
    from: Math.max(from, floor + 1, (begin.seq ?? 0) + 1),
    to: Math.min(to, end.seq ?? head),
    own,
    kind,
    role,
    tool,
    text: grep,
    by: by === undefined ? undefined : needSession(store, by),
    where: where === undefined ? undefined : conditionsIn(where, io),
    after: begin.time,
    before: end.time,
    last: n,
  };
}

/** The point or the time that a text names; an anchor may have the name of a time. */
function boundOf(
  store: HomeStore,
  info: SessionInfo,
  text: string | undefined,
  now: number,
): { readonly seq?: number; readonly time?: number } {
  if (text === undefined) return {};
  const time = timeOf(text, now);
  try {
    return { seq: store.entries.resolve(info.id, pointIn(store, info, text.replace(/^@/, ''))) };
  } catch (error) {
    if (
      time !== undefined &&
      error instanceof TapeError &&
      /^TAPE_(?:NO_ANCHOR|BAD_POINT|NO_SEQ)$/.test(error.code)
    )
      return { time };
    throw error;
  }
}
