import type { Entry, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject, recordedUsage, summarizerKind, totalOf } from '@tapedeck/tape/internal';
import { addUsage, noUsage, type Usage } from './usage.ts';

/** The total usage of model calls. */
export interface UsageSum {
  /** Model calls whose usage is recorded. */
  readonly steps: number;
  readonly usage: Usage;
  /** All tokens of `usage`. */
  readonly total: number;
  /** The sum of the recorded costs, in the unit of their writers; absent if none is recorded. */
  readonly cost?: number;
}

export interface ModelUsage extends UsageSum {
  /** Absent for calls that do not record their model. */
  readonly model?: string;
}

/** The usage of one session's model calls. */
export interface SessionUsage extends UsageSum {
  readonly session: string;
  /** Tokens in the model's window after the last call: prompt and answer. */
  readonly window?: number;
  /** By model, in the order of first use. */
  readonly models: readonly ModelUsage[];
  /**
   * The usage of inherited calls that the session shows, that is, what a branch begins with. It belongs to
   * the session that made the calls and is in no other sum here.
   */
  readonly inherited?: UsageSum;
  /** The usage of its summaries. It belongs to the summarizer sessions and is in no other sum here. */
  readonly summaries?: UsageSum;
  /** The sessions forked from it, in order; present with `tree`. */
  readonly children?: readonly SessionUsage[];
  /** The sum of the session and all its descendants; present with `tree`. */
  readonly tree?: UsageSum;
}

/** The usage of a session and of each of its descendants. */
export interface TreeUsage extends SessionUsage {
  readonly children: readonly TreeUsage[];
  readonly tree: UsageSum;
}

export const noSum: UsageSum = { steps: 0, usage: noUsage, total: 0 };

export function addSums(a: UsageSum, b: UsageSum): UsageSum {
  const cost = a.cost === undefined ? b.cost : a.cost + (b.cost ?? 0);
  return {
    steps: a.steps + b.steps,
    usage: addUsage(a.usage, b.usage),
    total: a.total + b.total,
    ...(cost !== undefined && { cost }),
  };
}

/**
 * Sums the calls among a session's entries, which it reads one at a time. A call is one assistant message,
 * however its stream ended. Skips inherited entries, which count where they were written; includes entries
 * hidden by a rewind, since they were paid for.
 */
async function sumUsage(
  session: string,
  entries: Iterable<Entry> | AsyncIterable<Entry>,
): Promise<SessionUsage> {
  const models = new Map<string | undefined, UsageSum>();
  let sum = noSum;
  let window: number | undefined;
  for await (const entry of entries) {
    const call = entry.inherited ? undefined : callOf(entry);
    if (call === undefined) continue;
    const model = typeof entry.meta.model === 'string' ? entry.meta.model : undefined;
    models.set(model, addSums(models.get(model) ?? noSum, call));
    sum = addSums(sum, call);
    if (entry.kind === 'message') window = call.total;
  }
  return {
    session,
    ...sum,
    ...(window !== undefined && { window }),
    models: [...models].map(([model, of]) => ({ ...(model !== undefined && { model }), ...of })),
  };
}

/** The usage that an entry records: of an assistant message, or of a summary. */
function callOf({ kind, payload, meta }: Entry): UsageSum | undefined {
  if (!isObject(payload)) return undefined;
  // The message of a merge records the usage of its summary.
  const isAnswer = kind === 'message' && (payload.role === 'assistant' || meta.source === 'merge');
  if (kind !== 'compaction' && !isAnswer) return undefined;
  const usage = recordedUsage(meta);
  if (usage === undefined) return undefined;
  return {
    steps: 1,
    usage,
    total: totalOf(usage),
    ...(typeof meta.cost === 'number' && { cost: meta.cost }),
  };
}

async function* answersOf(store: Pick<TapeStore, 'entries'>, id: string): AsyncGenerator<Entry> {
  for (const kind of ['message', 'compaction'] as const) yield* store.entries.read(id, { own: true, kind });
}

/**
 * The usage of the inherited answers that no rewind in the parent hides; undefined if the session inherits
 * nothing.
 */
async function inheritedUsage(
  store: Pick<TapeStore, 'sessions' | 'views'>,
  id: string,
): Promise<UsageSum | undefined> {
  const { base = 0, floor = 0 } = (await store.sessions.find(id)) ?? {};
  if (base === floor) return undefined;
  let sum = noSum;
  for await (const entry of store.views.entries(id, { policy: 'full', at: base })) {
    const call = callOf(entry);
    if (call !== undefined) sum = addSums(sum, call);
  }
  return sum;
}

/** The usage of a session's summaries, including failed ones; undefined without summaries. */
export async function readSummaries(
  store: Pick<TapeStore, 'entries' | 'sessions'>,
  id: string,
): Promise<UsageSum | undefined> {
  let sum: UsageSum | undefined;
  for (const child of await store.sessions.list({ parent: id, kind: summarizerKind, all: true }))
    sum = addSums(sum ?? noSum, await sumUsage(child.session, answersOf(store, child.id)));
  return sum;
}

/** Reads the usage of a session and of all its descendants. */
async function readTree(
  store: Pick<TapeStore, 'entries' | 'sessions'>,
  { id, session: name }: Pick<SessionInfo, 'id' | 'session'>,
): Promise<TreeUsage> {
  return await withTree(store, id, await sumUsage(name, answersOf(store, id)));
}

async function withTree(
  store: Pick<TapeStore, 'entries' | 'sessions'>,
  id: string,
  own: SessionUsage,
): Promise<TreeUsage> {
  const children: TreeUsage[] = [];
  for (const child of await store.sessions.list({ parent: id, all: true }))
    children.push(await readTree(store, child));
  const { steps, usage, total, cost } = own;
  const sum: UsageSum = { steps, usage, total, ...(cost !== undefined && { cost }) };
  return { ...own, children, tree: children.reduce((all, { tree }) => addSums(all, tree), sum) };
}

/**
 * Reads the usage of a session from its own entries. `beside` adds the inherited usage, which reads all
 * inherited entries, and that of summaries; `tree` adds that of all descendants.
 * @throws TAPE_NO_SESSION
 *
 * @example
 * ```ts
 * import { openDeck, readUsage } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await main.run('Plan the release.');
 * const { steps } = await readUsage(deck.store, await main.info());
 * console.log(steps); // 1
 * ```
 */
export async function readUsage(
  store: Pick<TapeStore, 'entries' | 'sessions' | 'views'>,
  session: Pick<SessionInfo, 'id' | 'session'>,
  options: { readonly tree: true; readonly beside?: boolean },
): Promise<TreeUsage>;
export async function readUsage(
  store: Pick<TapeStore, 'entries' | 'sessions' | 'views'>,
  session: Pick<SessionInfo, 'id' | 'session'>,
  options?: { readonly tree?: boolean; readonly beside?: boolean },
): Promise<SessionUsage>;
export async function readUsage(
  store: Pick<TapeStore, 'entries' | 'sessions' | 'views'>,
  { id, session: name }: Pick<SessionInfo, 'id' | 'session'>,
  { tree = false, beside = false }: { readonly tree?: boolean; readonly beside?: boolean } = {},
): Promise<SessionUsage> {
  const inherited = beside ? await inheritedUsage(store, id) : undefined;
  const summaries = beside ? await readSummaries(store, id) : undefined;
  const own = {
    ...(await sumUsage(name, answersOf(store, id))),
    ...(inherited !== undefined && { inherited }),
    ...(summaries !== undefined && { summaries }),
  };
  return tree ? await withTree(store, id, own) : own;
}
