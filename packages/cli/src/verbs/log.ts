import { type Entry, type EntryKind, type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import { clientCalls } from '@tapedeck/tape/internal';
import type { EntryQuery } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { jsonText } from '../escape.ts';
import { exit } from '../exit.ts';
import { sinceOf, timeOf } from '../input.ts';
import { printArray } from '../output/array.ts';
import { entryJson, entryLine } from '../output/entry.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

interface Options {
  readonly name: string;
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly since: string | undefined;
  readonly kind: string | undefined;
  readonly own: boolean | undefined;
  readonly graph: boolean | undefined;
  readonly oneline: boolean | undefined;
  readonly n: number | undefined;
  readonly follow: boolean | undefined;
}

export const log: Verb = defineVerb({
  command: 'log <name>',
  group: 'Look',
  paged: true,
  summary: 'Show the entries of a session',
  detail: 'An arrow (↑) marks inherited entries; --own omits them.',
  examples: [
    ['tape log main -n 20', 'Show the last 20 entries'],
    ['tape log main --since task-start --jsonl', 'Print the entries after an anchor as JSON lines'],
    ['tape log main --since 2026-11-21T10:00', 'Show the entries from that time on'],
    ['tape log main --follow', 'Show the entries, then new ones as any process writes them'],
    ['tape log main --graph', 'Draw anchors, forks and merges in lanes'],
  ],
  arguments: { name: 'Session' },
  options: {
    from: { type: 'number', describe: 'First position' },
    to: { type: 'number', describe: 'Last position' },
    since: {
      type: 'string',
      describe:
        'Show the entries after this anchor or @SEQ, or from this time on (at the source, for an import)',
    },
    kind: {
      type: 'string',
      describe: 'Show entries of this kind: message, tool-call, tool-result, anchor, event, …',
    },
    own: { type: 'boolean', negatable: true, describe: 'Omit inherited entries; --no-own: show them alone' },
    graph: { type: 'boolean', describe: 'Draw anchors, forks and merges in lanes' },
    oneline: {
      type: 'boolean',
      describe: 'Cut each entry to the width of the terminal (default on a terminal)',
    },
    n: { type: 'number', describe: 'Show the last N entries' },
    follow: { type: 'boolean', alias: 'f', describe: 'Show new entries as they are written, until Ctrl-C' },
  },
  conflicts: { graph: ['json', 'jsonl'], follow: ['json', 'to', 'graph'] },
  run: async (args, context) => {
    if (args.kind !== undefined && !kinds.has(args.kind) && !/^x-[a-z0-9-]+$/.test(args.kind))
      throw new UsageError(
        `cannot list entries of kind '${args.kind}': it must be ${[...kinds].join(', ')} or x-…`,
      );
    return await context.reading(async (store) => {
      const { session: name, id } = needSession(store, args.name);
      if (args.graph === true) {
        const { drawLog } = await import('../output/lanes.ts');
        const { readFamily } = await import('../lineage.ts');
        for (const row of drawLog(readFamily(store, id), { store, session: id }, context))
          await context.io.out(`${row}\n`);
        return 0;
      }
      const { head } = needSession(store, name);
      // `--follow` prints the entries that are written from here on.
      await print(find(store, name, { ...args, to: args.to ?? head, now: context.io.now() }), args, context);
      return args.follow === true ? await follow({ store, name, from: head + 1 }, args, context) : 0;
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

/** Shows the entries that any process writes from a position on. */
async function follow(
  { store, name, from }: { store: SqliteTapeStore; name: string; from: number },
  args: Options,
  context: Context,
): Promise<number> {
  const { tail } = await import('@tapedeck/runtime');
  for await (const fresh of tail(store, name, { from, signal: context.io.signal }))
    if (fresh.type === 'entry' && isOfKind(fresh.entry, args.kind)) await print([fresh.entry], args, context);
  return exit.interrupted;
}

function isOfKind({ kind, payload }: Entry, wanted: string | undefined): boolean {
  if (wanted === 'tool-call') return clientCalls(payload).length > 0;
  return wanted === undefined || kind === wanted;
}

/** The entries to show. For `--kind tool-call`: messages with calls, as a call has no separate entry. */
function* find(
  store: SqliteTapeStore,
  name: string,
  args: Options & { readonly now: number },
): Iterable<Entry> {
  const calls = args.kind === 'tool-call';
  const after = timeAfter(store, name, args);
  const query = {
    ...(args.from !== undefined && { from: args.from }),
    ...(args.to !== undefined && { to: args.to }),
    ...(args.since !== undefined && after === undefined && { since: sinceOf(args.since) }),
    ...(args.own !== undefined && { own: args.own }),
    ...(calls ? { calls } : args.kind !== undefined && { kind: args.kind as EntryKind }),
  };
  if (after === undefined) {
    yield* store.entries.read(name, { ...query, ...(args.n !== undefined && { last: args.n }) });
    return;
  }
  const isWanted = ({ sourceAt, at }: Entry) => (sourceAt ?? at) >= after;
  if (args.n === undefined) {
    for (const entry of store.entries.read(name, query)) if (isWanted(entry)) yield entry;
    return;
  }
  const found: Entry[] = [];
  for (const entry of fromEnd(store, name, query)) {
    if (found.length === args.n) break;
    if (isWanted(entry)) found.push(entry);
  }
  yield* found.reverse();
}

/** Reads entries from the last one back, in growing pages. */
function* fromEnd(store: SqliteTapeStore, name: string, query: EntryQuery): Iterable<Entry> {
  let { to } = query;
  for (let last = 200; ; last = Math.min(2 * last, 5_000)) {
    const page = [...store.entries.read(name, { ...query, last, ...(to !== undefined && { to }) })];
    yield* page.toReversed();
    const [first] = page;
    if (first === undefined || page.length < last) return;
    to = first.seq - 1;
  }
}

/** The time that `--since` names, unless it is the name of an anchor. */
function timeAfter(
  store: SqliteTapeStore,
  name: string,
  { since, now }: Pick<Options, 'since'> & { readonly now: number },
): number | undefined {
  const time = since === undefined ? undefined : timeOf(since, now);
  if (since === undefined || time === undefined) return undefined;
  try {
    store.entries.resolve(name, since);
    return undefined;
  } catch (error) {
    if (error instanceof TapeError && error.code === 'TAPE_NO_ANCHOR') return time;
    throw error;
  }
}

async function print(
  entries: Iterable<Entry>,
  { oneline }: Options,
  { io, options, color }: Context,
): Promise<void> {
  if (options.json === true) {
    await printArray(io, Iterator.from(entries).map(entryJson));
    return;
  }
  // In a pipe, entries are cut to the width of the terminal with `--oneline` only.
  const width = io.isTerminal || oneline === true ? io.columns : 2000;
  for (const entry of entries) {
    if (options.jsonl === true) await io.out(`${jsonText(entryJson(entry))}\n`);
    else if (options.quiet === true) await io.out(`${entry.seq}\n`);
    else await io.out(`${entryLine(entry, { color, width })}\n`);
  }
}
