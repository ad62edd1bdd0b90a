import type { SessionInfo, TapeStore } from '@tapedeck/tape';
import { callOf, isDeleted, summarizerKind, totalOf, treeParentOf } from '@tapedeck/tape/internal';
import type { ModelCalls } from '@tapedeck/tape/store';
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
  /** The usage of its summaries and of its title. It belongs to the summarizer sessions and is in no other sum here. */
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

/** The sum of the calls of a model, or of all. */
export function sumOf({ steps, usage, cost }: Pick<ModelCalls, 'steps' | 'usage' | 'cost'>): UsageSum {
  return { steps, usage, total: totalOf(usage), ...(cost !== undefined && { cost }) };
}

/** The usage of a session from the stored sums of its models, in the order of first use. Pure. */
function ownUsage(session: string, calls: readonly ModelCalls[] = []): SessionUsage {
  const models = calls.map((of) => ({ ...(of.model !== undefined && { model: of.model }), ...sumOf(of) }));
  const last = calls.reduce<ModelCalls['last']>(
    (newest, { last: at }) => (at !== undefined && at.seq > (newest?.seq ?? 0) ? at : newest),
    undefined,
  );
  return {
    session,
    ...models.reduce<UsageSum>(addSums, noSum),
    ...(last !== undefined && { window: last.tokens }),
    models,
  };
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
    if (call !== undefined) sum = addSums(sum, sumOf({ ...call, steps: 1 }));
  }
  return sum;
}

/** The usage of a session's summaries, including failed ones; undefined without summaries. */
export async function readSummaries(
  store: Pick<TapeStore, 'sessions'>,
  id: string,
): Promise<UsageSum | undefined> {
  let sum: UsageSum | undefined;
  for (const child of await store.sessions.list({ parent: id, kind: summarizerKind, all: true }))
    sum = addSums(sum ?? noSum, await readOwn(store, child));
  return sum;
}

async function readOwn(
  store: Pick<TapeStore, 'sessions'>,
  { id, session: name }: Pick<SessionInfo, 'id' | 'session'>,
): Promise<SessionUsage> {
  return ownUsage(name, await store.sessions.calls({ session: id }));
}

/** A session, its parent, and whether it is deleted. */
type Listed = Pick<SessionInfo, 'id' | 'session' | 'parentId' | 'link' | 'lifecycle'>;

/**
 * The usage of a session with those below it, children in the order in which they are listed. A deleted one has its ULID in the
 * place of its name, which is free, and is a child only where one below it is not deleted; its calls count. Pure.
 */
function usageTree(
  root: Pick<SessionInfo, 'id' | 'session'>,
  infos: readonly Listed[],
  calls: readonly ModelCalls[],
): TreeUsage {
  const byId = Map.groupBy(calls, ({ id }) => id);
  const listed = Map.groupBy(infos, (info) => treeParentOf(info).parentId);
  const order: { readonly id: string; readonly name: string; readonly isGone: boolean }[] = [
    { id: root.id, name: root.session, isGone: false },
  ];
  for (const { id } of order)
    for (const info of listed.get(id) ?? []) {
      const isGone = isDeleted(info);
      order.push({ id: info.id, name: isGone ? info.id : info.session, isGone });
    }
  const made = new Map<string, { readonly usage: TreeUsage; readonly isShown: boolean }>();
  // The last first: a session is made when all below it are.
  for (const { id, name, isGone } of order.toReversed()) {
    const own = ownUsage(name, byId.get(id));
    const below = (listed.get(id) ?? []).flatMap((child) => made.get(child.id) ?? []);
    const children = below.flatMap((child) => (child.isShown ? child.usage : []));
    const { steps, usage, total, cost } = own;
    const sum: UsageSum = { steps, usage, total, ...(cost !== undefined && { cost }) };
    const tree = below.reduce((all, child) => addSums(all, child.usage.tree), sum);
    made.set(id, { usage: { ...own, children, tree }, isShown: !isGone || children.length > 0 });
  }
  return made.get(root.id)?.usage ?? { ...ownUsage(root.session), children: [], tree: noSum };
}

/**
 * Reads the usage of a session from the stored sums of its own entries. `beside` adds the inherited usage, which reads all
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
  store: Pick<TapeStore, 'sessions' | 'views'>,
  session: Pick<SessionInfo, 'id' | 'session'>,
  options: { readonly tree: true; readonly beside?: boolean },
): Promise<TreeUsage>;
export async function readUsage(
  store: Pick<TapeStore, 'sessions' | 'views'>,
  session: Pick<SessionInfo, 'id' | 'session'>,
  options?: { readonly tree?: boolean; readonly beside?: boolean },
): Promise<SessionUsage>;
export async function readUsage(
  store: Pick<TapeStore, 'sessions' | 'views'>,
  { id, session: name }: Pick<SessionInfo, 'id' | 'session'>,
  { tree = false, beside = false }: { readonly tree?: boolean; readonly beside?: boolean } = {},
): Promise<SessionUsage> {
  const inherited = beside ? await inheritedUsage(store, id) : undefined;
  const summaries = beside ? await readSummaries(store, id) : undefined;
  const more = {
    ...(inherited !== undefined && { inherited }),
    ...(summaries !== undefined && { summaries }),
  };
  if (!tree) return { ...(await readOwn(store, { id, session: name })), ...more };
  const below = await store.sessions.list({ under: id, all: true, after: null });
  const calls = await store.sessions.calls({ session: id, tree: true });
  return { ...usageTree({ id, session: name }, below, calls), ...more };
}
