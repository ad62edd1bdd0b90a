import { clientCalls, type Entry, type EntryKind, type SqliteTapeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { entryJson, entryLine } from '../output/entry.ts';
import { needSession, pointOf } from '../session/place.ts';
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
  summary: 'Show the entries of a session',
  detail: 'Inherited entries are marked with an arrow up; --own leaves them out.',
  examples: [
    ['tape log main -n 20', 'The last twenty entries'],
    ['tape log main --since task-start --jsonl', 'What followed an anchor, as JSON lines'],
    ['tape log main --follow', 'And then what any process writes to it'],
    ['tape log main --graph', 'Its anchors, forks and merges, in lanes'],
  ],
  options: (y) =>
    y
      .positional('name', { type: 'string', demandOption: true, describe: 'Session' })
      .option('from', { type: 'number', requiresArg: true, describe: 'First position' })
      .option('to', { type: 'number', requiresArg: true, describe: 'Last position' })
      .option('since', {
        type: 'string',
        requiresArg: true,
        describe: 'Only what follows this anchor or @SEQ',
      })
      .option('kind', {
        type: 'string',
        requiresArg: true,
        describe: 'message, tool-call, tool-result, anchor, event, …',
      })
      .option('own', { type: 'boolean', describe: 'Nothing inherited; --no-own: nothing else' })
      .option('graph', { type: 'boolean', describe: 'Draw its anchors, forks and merges in lanes' })
      .option('oneline', {
        type: 'boolean',
        describe: 'Cut every entry to the width of the terminal (the default there)',
      })
      .option('n', { type: 'number', requiresArg: true, describe: 'The last so many, oldest first' })
      .option('follow', {
        alias: 'f',
        type: 'boolean',
        describe: 'Then go on with what is written, until Ctrl-C',
      })
      .conflicts('graph', ['json', 'jsonl'])
      .conflicts('follow', ['json', 'to', 'graph']),
  run: async (args, context) => {
    if (args.kind !== undefined && !kinds.has(args.kind) && !/^x-[a-z0-9-]+$/.test(args.kind))
      throw new UsageError(
        `cannot list entries of kind '${args.kind}': it must be ${[...kinds].join(', ')} or x-…`,
      );
    return await context.reading(async (store) => {
      const { name, id } = needSession(store, args.name);
      if (args.graph === true) {
        const { drawLog } = await import('../output/lanes.ts');
        for (const row of drawLog(store, context, id)) await context.io.out(`${row}\n`);
        return 0;
      }
      const { head } = needSession(store, name);
      // What is written meanwhile is told once, by whoever follows.
      await print(find(store, name, { ...args, to: args.to ?? head }), args, context);
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

/** Shows what is written from a position on, whoever writes it. */
async function follow(
  { store, name, from }: { store: SqliteTapeStore; name: string; from: number },
  args: Options,
  context: Context,
): Promise<number> {
  const { tail } = await import('@tapedeck/runtime/watch');
  for await (const fresh of tail(store, name, { from, signal: context.io.signal }))
    if (fresh.type === 'entry' && isOfKind(fresh.entry, args.kind)) await print([fresh.entry], args, context);
  return exit.interrupted;
}

function isOfKind({ kind, payload }: Entry, asked: string | undefined): boolean {
  if (asked === 'tool-call') return clientCalls(payload).length > 0;
  return asked === undefined || kind === asked;
}

/** A tool call has no entry of its own: it is a part of its assistant message. */
function* find(store: SqliteTapeStore, name: string, args: Options): Iterable<Entry> {
  const calls = args.kind === 'tool-call';
  const range = {
    ...(args.from !== undefined && { from: args.from }),
    ...(args.to !== undefined && { to: args.to }),
    ...(args.since !== undefined && { since: pointOf(args.since.replace(/^@(?!\d+$)/, '')) }),
    ...(args.own !== undefined && { own: args.own }),
  };
  if (!calls) {
    const kind = args.kind === undefined ? {} : { kind: args.kind as EntryKind };
    yield* store.read(name, { ...range, ...kind, ...(args.n !== undefined && { last: args.n }) });
    return;
  }
  const found: Entry[] = [];
  for (const entry of store.read(name, { ...range, kind: 'message' })) {
    if (clientCalls(entry.payload).length === 0) continue;
    if (args.n === undefined) yield entry;
    else {
      found.push(entry);
      if (found.length > args.n) found.shift();
    }
  }
  yield* found;
}

async function print(
  entries: Iterable<Entry>,
  { oneline }: Options,
  { io, options, color }: Context,
): Promise<void> {
  if (options.json === true) {
    await io.out(`${JSON.stringify([...entries].map(entryJson))}\n`);
    return;
  }
  // In a pipe a line is as long as its text, unless it is asked to be short.
  const width = io.isTerminal || oneline === true ? io.columns : 2000;
  for (const entry of entries) {
    if (options.jsonl === true) await io.out(`${JSON.stringify(entryJson(entry))}\n`);
    else if (options.quiet === true) await io.out(`${entry.seq}\n`);
    else await io.out(`${entryLine(entry, { color, width })}\n`);
  }
}
