import type { SessionUsage, UsageSum } from '@tapedeck/runtime';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { jsonText } from '../escape.ts';
import { printArray } from '../output/array.ts';
import { sessionUsageJson, sumJson, usageLines, usageTable } from '../output/usage.ts';
import { distinctIn } from '../reference.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

/** Number of sessions that a terminal shows without `-n`. */
const shownMax = 50;

const pageSize = 200;

export const usage: Verb = defineVerb({
  command: 'usage [name]',
  group: 'Look',
  paged: true,
  summary: 'Add up the tokens of model calls',
  detail:
    'Counts the calls recorded on the own entries of a session, including entries that a rewind hides and imported calls, but not ' +
    'redacted entries. Usage of inherited entries and of the sessions that wrote its summaries is shown separately. The columns ' +
    'do not overlap: input excludes cache reads and writes, output excludes reasoning. The window is the number of tokens of the ' +
    'last call, input and output together. A cost is shown if it was recorded with the call. ' +
    'Deleted sessions are not listed, and count in the total; --tree has one, as its ULID, where others below it are not deleted. ' +
    `Without a name a terminal shows the ${shownMax} newest sessions unless -n is given, and the total of all; elsewhere all are ` +
    'printed in the order of their creation.',
  examples: [
    ['tape usage', 'Show each session, and the total'],
    ['tape usage main --tree', 'Show main and its descendants'],
  ],
  arguments: { name: 'Session (default: all)' },
  options: {
    tree: { type: 'boolean', describe: 'Include descendants' },
    n: { type: 'number', describe: 'Show the N newest sessions; with --tree, the newest without a parent' },
  },
  run: async ({ name, tree = false, n }, context) =>
    await context.reading(async (store) => {
      if (name === undefined) await printAll(store, { tree, n }, context);
      else await printOne(store, { name, tree }, context);
      return 0;
    }),
});

async function printOne(
  store: HomeStore,
  { name, tree }: { readonly name: string; readonly tree: boolean },
  { io, answer }: Context,
): Promise<void> {
  const { readUsage } = await import('@tapedeck/runtime');
  const own: SessionUsage = await readUsage(store, needSession(store, name), { tree, beside: true });
  const total = own.tree ?? own;
  await answer({
    json: sessionUsageJson(own),
    quiet: String(total.total),
    human: usageTable([own], {
      width: widthOf(io),
      total: tree ? total : undefined,
      distinct: distinctIn(store),
    }),
  });
}

/** Columns of the terminal; undefined in a pipe. */
function widthOf({ isTerminal, columns }: Context['io']): number | undefined {
  return isTerminal ? columns : undefined;
}

/** Prints the usage of all sessions, or of the newest, as it is read, and their total from the stored sums. */
async function printAll(
  store: HomeStore,
  { tree, n }: { readonly tree: boolean; readonly n: number | undefined },
  { io, options, status }: Context,
): Promise<void> {
  const { sumOf } = await import('@tapedeck/runtime/internal');
  const total: UsageSum = sumOf(store.totalCalls());
  const isData = options.json === true || options.jsonl === true;
  if (options.quiet === true && !isData) {
    await io.out(`${total.total}\n`);
    return;
  }
  const limit = n ?? (io.isTerminal && !isData ? shownMax : undefined);
  const infos = limit === undefined ? allOf(store, tree) : newestOf(store, tree, limit + 1);
  const found = usagesOf(store, infos, { tree, limit });
  if (options.jsonl === true)
    for await (const own of found) await io.out(`${jsonText(sessionUsageJson(own))}\n`);
  else if (options.json === true)
    await printArray(io, jsonOf(found), {
      before: '{"sessions":',
      after: `,"total":${jsonText(sumJson(total))}}`,
    });
  else if (io.isTerminal)
    await io.out(
      `${usageTable(await Array.fromAsync(found), { width: widthOf(io), total, distinct: distinctIn(store) })}\n`,
    );
  else for await (const line of usageLines(found, total)) await io.out(`${line}\n`);
  if (limit !== undefined && io.isTerminal && !isData && newestOf(store, tree, limit + 1).length > limit)
    status(`There are more sessions (see them with -n ${limit * 4})`);
}

function newestOf(store: HomeStore, tree: boolean, limit: number): readonly SessionInfo[] {
  return store.sessions.list({ all: true, deleted: false, limit, ...(tree && { roots: true }) });
}

/** All sessions, or those without a parent, in the order of their creation. */
function* allOf(store: HomeStore, tree: boolean): Generator<SessionInfo> {
  for (let after: string | null = null; ; ) {
    const page = store.sessions.list({
      ...{ all: true, deleted: false, after, limit: pageSize },
      ...(tree && { roots: true }),
    });
    yield* page;
    const last: SessionInfo | undefined = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    after = last.id;
  }
}

async function* usagesOf(
  store: HomeStore,
  infos: Iterable<SessionInfo>,
  { tree, limit = Number.POSITIVE_INFINITY }: { readonly tree: boolean; readonly limit?: number | undefined },
): AsyncGenerator<SessionUsage> {
  const { readUsage } = await import('@tapedeck/runtime');
  let left = limit;
  for (const info of infos) {
    if (left <= 0) return;
    yield await readUsage(store, info, { tree });
    left -= 1;
  }
}

async function* jsonOf(found: AsyncIterable<SessionUsage>): AsyncGenerator<unknown> {
  for await (const own of found) yield sessionUsageJson(own);
}
