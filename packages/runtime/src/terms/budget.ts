import type { SessionInfo, TapeStore } from '@tapedeck/tape';
import { isSummarizer } from '@tapedeck/tape/internal';
import { SessionError } from '../errors.ts';
import { addSums, noSum, readSummaries, readUsage } from '../usage/session-usage.ts';
import { type Ancestry, type Budget, originOf } from './terms.ts';

/** The budget that model calls have used. */
interface Spent {
  readonly steps: number;
  readonly tokens: number;
  readonly cost: number;
}

const nothing: Spent = { steps: 0, tokens: 0, cost: 0 };

/** The abort reason of a run whose time budget ran out. */
export class OutOfTime extends Error {
  readonly limit = 'time';
}

/** The longest timer of Node.js, in milliseconds. */
const timerMaxMs = 2 ** 31 - 1;

/** A signal that is aborted at a run's deadline. Call `stop` when the run ends earlier. */
export function timerFor(
  deadline: number,
  { now, name }: { readonly now: () => number; readonly name: string },
): { readonly signal: AbortSignal; readonly stop: () => void } {
  const controller = new AbortController();
  const end = () => controller.abort(new OutOfTime(`the time budget of '${name}' ran out`));
  const left = deadline - now();
  if (left <= 0) end();
  const timer = left > 0 && left <= timerMaxMs ? setTimeout(end, left) : undefined;
  return { signal: controller.signal, stop: () => clearTimeout(timer) };
}

/** A reached limit and its message. */
export interface Reached {
  readonly limit: 'steps' | 'tokens' | 'cost' | 'time';
  readonly message: string;
}

/** The first reached limit of a budget. Pure. */
function reachedOf(budget: Budget, spent: Spent, subject: string): Reached | undefined {
  for (const limit of ['steps', 'tokens', 'cost'] as const) {
    const most = budget[limit];
    if (most !== undefined && spent[limit] >= most)
      return { limit, message: `the ${limit} of ${subject} are used up: ${spent[limit]} of ${most}` };
  }
  return undefined;
}

/** The bounds of a session's runs. */
export interface Bounds {
  /** The limit that forbids a further model call; undefined when none does. */
  readonly reached: () => Promise<Reached | undefined>;
  /** The end of its own and its ancestors' time budgets, in milliseconds since the epoch. */
  readonly deadline: number;
}

/**
 * The budgets that bound a session: its own, and the tree budgets of its ancestors. Usage is read from the
 * tapes. The whole budget of a running sibling counts as used until it ends (reserve and settle).
 */
export function boundsOf(store: TapeStore, line: Ancestry): Bounds | undefined {
  const checks: (() => Promise<Reached | undefined>)[] = [];
  let deadline = Number.POSITIVE_INFINITY;
  const ids = new Set(line.map(({ info }) => info.id));
  const settled = new Map<string, Spent>();
  for (const [i, { info: session, origin }] of line.entries()) {
    const { budget, treeBudget } = origin.terms;
    if (budget !== undefined && i === 0) {
      checks.push(async () => reachedOf(budget, await ownSpent(store, session), `'${session.session}'`));
      deadline = Math.min(deadline, session.createdAt + (budget.timeMs ?? deadline));
    }
    if (treeBudget === undefined) continue;
    const subject = `'${session.session}' and its descendants`;
    checks.push(async () =>
      reachedOf(treeBudget, await committed(store, session, { line: ids, settled }), subject),
    );
    deadline = Math.min(deadline, session.createdAt + (treeBudget.timeMs ?? deadline));
  }
  if (checks.length === 0) return undefined;
  const reached = async () => {
    for (const check of checks) {
      const found = await check();
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return { reached, deadline };
}

/** Whether a session or one of its ancestors has a tree budget. */
export function isTreeBounded(line: Ancestry): boolean {
  return line.some(({ origin: { terms } }) => terms.treeBudget !== undefined);
}

/**
 * Checks that the remaining tree budgets of the line cover the budgets of all these children together.
 * @throws SESSION_LIMIT
 */
export async function assertAffordable(
  store: TapeStore,
  line: Ancestry,
  children: readonly Budget[],
): Promise<void> {
  for (const { info: at, origin } of line) {
    const { treeBudget } = origin.terms;
    if (treeBudget === undefined) continue;
    // The session's own reservation does not count: its children are paid from it.
    const taken = await committed(store, at, { line: new Set([at.id]), settled: new Map() });
    for (const limit of ['steps', 'tokens', 'cost'] as const) {
      const most = treeBudget[limit];
      const wanted = children.reduce((sum, child) => sum + (child[limit] ?? 1), 0);
      if (most === undefined || taken[limit] + wanted <= most) continue;
      const who = children.length === 1 ? 'the child' : `${children.length} children`;
      throw new SessionError(
        'SESSION_LIMIT',
        `cannot fork '${line[0].info.session}': '${at.session}' and its descendants have ${Math.max(0, most - taken[limit])} of ${most} ${limit} left, and ${who} would get ${wanted}`,
        { data: { session: line[0].info.session, limit, of: at.session } },
      );
    }
  }
}

/**
 * The budget that a session and its descendants have used or reserved, without the reservations of the `line`
 * itself.
 */
async function committed(
  store: TapeStore,
  info: SessionInfo,
  { line, settled }: { readonly line: ReadonlySet<string>; readonly settled: Map<string, Spent> },
): Promise<Spent> {
  const known = settled.get(info.id);
  if (known !== undefined) return known;
  let sum = await ownSpent(store, info);
  // Skip summarizer sessions: the usage of the session includes its summaries.
  for (const child of await store.sessions.list({ parent: info.id, all: true }))
    if (!isSummarizer(child)) sum = add(sum, await committed(store, child, { line, settled }));
  const isOver = info.task !== undefined && info.task !== 'running' && info.delivery !== undefined;
  if (isOver) settled.set(info.id, sum);
  if (isOver || line.has(info.id) || info.parentId === undefined) return sum;
  const { terms } = await originOf(store, info);
  const promised = terms.treeBudget ?? terms.budget ?? {};
  return {
    steps: Math.max(sum.steps, promised.steps ?? 0),
    tokens: Math.max(sum.tokens, promised.tokens ?? 0),
    cost: Math.max(sum.cost, promised.cost ?? 0),
  };
}

/** The budget that a session itself used, including its summaries. */
async function ownSpent(store: TapeStore, info: SessionInfo): Promise<Spent> {
  if (info.head === info.base) return nothing;
  const summaries = (await readSummaries(store, info.id)) ?? noSum;
  const { steps, total, cost = 0 } = addSums(await readUsage(store, info), summaries);
  return { steps, tokens: total, cost };
}

function add(a: Spent, b: Spent): Spent {
  return { steps: a.steps + b.steps, tokens: a.tokens + b.tokens, cost: a.cost + b.cost };
}
