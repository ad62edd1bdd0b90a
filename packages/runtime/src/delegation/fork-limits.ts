import type { SessionInfo } from '@tapedeck/tape';
import { type Limits, limitsOf } from '../config/config.ts';
import type { Shared } from '../config/shared.ts';
import { SessionError } from '../errors.ts';
import { assertAffordable, isTreeBounded } from '../terms/budget.ts';
import { type Ancestry, type Budget, isBranch } from '../terms/terms.ts';

/** The fields of a requested fork that limits check. */
export interface LimitedFork {
  readonly key?: string;
  /** How it reports to its parent. A fork that does not is no delegated child, and none that is unfinished. */
  readonly deliver?: string;
  readonly budget?: Budget;
  readonly treeBudget?: Budget;
}

/** The budgets of a child: for its own model calls, and for all its descendants too. */
export interface Budgets {
  readonly budget?: Budget;
  readonly treeBudget?: Budget;
}

/**
 * The budgets of a child: those of its fork, else the deck's. The deck's tree budget does not apply below a
 * session that has one.
 */
export function budgetsOf({ config }: Pick<Shared, 'config'>, parent: Ancestry, fork: LimitedFork): Budgets {
  const budget = fork.budget ?? config.budget?.child;
  const treeBudget = fork.treeBudget ?? (isTreeBounded(parent) ? undefined : config.budget?.tree);
  return {
    ...(budget !== undefined && { budget }),
    ...(treeBudget !== undefined && { treeBudget }),
  };
}

/**
 * Checks that all of these forks fit into the deck's limits and the remaining budgets of the ancestors.
 * Children that exist already, by their keys, do not count.
 * @param line the line of the session that forks
 * @throws SESSION_LIMIT, SESSION_BAD_INPUT
 */
export async function assertAllowed(
  parts: Shared,
  line: Ancestry,
  forks: readonly LimitedFork[],
): Promise<void> {
  const [{ info: parent }] = line;
  const wanted: LimitedFork[] = [];
  const keys = new Set<string>();
  for (const fork of forks) {
    for (const one of Object.values(budgetsOf(parts, line, fork))) assertBudget(parts, parent.session, one);
    if (await isKnown(parts, parent, fork)) continue;
    // Forks with the same key are one child.
    if (fork.key !== undefined && keys.has(fork.key)) continue;
    if (fork.key !== undefined) keys.add(fork.key);
    wanted.push(fork);
  }
  if (wanted.length === 0) return;
  assertDepth(parts, parent.session, line);
  await assertBreadth(parts, line, wanted.filter(({ deliver }) => deliver !== undefined).length);
  const reserved = wanted.map((fork) => {
    const { budget, treeBudget } = budgetsOf(parts, line, fork);
    return treeBudget ?? budget ?? {};
  });
  await assertAffordable(parts.store, line, reserved);
}

/** Whether the child exists already, by its key. */
async function isKnown({ store }: Shared, parent: SessionInfo, { key }: LimitedFork): Promise<boolean> {
  return key !== undefined && (await store.sessions.list({ parent: parent.id, key, all: true })).length > 0;
}

function assertDepth({ config }: Shared, parent: string, line: Ancestry): void {
  const { maxDepth } = limitsOf(config);
  const depth = depthOf(line) + 1;
  if (depth <= maxDepth) return;
  const why = `its child would be ${depth} forks deep`;
  throw exceeded(`fork '${parent}'`, why, { limit: 'maxDepth', max: maxDepth, session: parent, depth });
}

/** Counts the unfinished children of the session, and those of its whole tree. */
async function assertBreadth({ store, config }: Shared, line: Ancestry, wanted: number): Promise<void> {
  if (wanted === 0) return;
  const { maxChildren, maxTree } = limitsOf(config);
  const [{ info: parent }] = line;
  const root = (line.at(-1) ?? line[0]).info;
  const act = `fork '${parent.session}'${wanted === 1 ? '' : ` ${wanted} times`}`;
  const data = { session: parent.session };
  if (Math.min(maxTree, maxChildren) === Number.POSITIVE_INFINITY) return;
  const { children, below } = await store.sessions.unfinished(parent.id, root.id);
  if (children + wanted > maxChildren)
    throw exceeded(act, `${children} of its children are unfinished`, {
      ...data,
      limit: 'maxChildren',
      max: maxChildren,
      children,
    });
  if (below + wanted > maxTree)
    throw exceeded(act, `${below} children below '${root.session}' are unfinished`, {
      ...data,
      limit: 'maxTree',
      max: maxTree,
      root: root.session,
      children: below,
    });
}

/** The error for a fork beyond a limit of the deck, which names the field that sets it. */
function exceeded(
  act: string,
  why: string,
  data: { readonly limit: keyof Limits; readonly max: number } & Readonly<Record<string, unknown>>,
): SessionError {
  const message = `cannot ${act}: ${why}, and the limit is ${data.max} (limits.${data.limit})`;
  return new SessionError('SESSION_LIMIT', message, { data });
}

const limits: ReadonlySet<string> = new Set(['steps', 'tokens', 'timeMs', 'cost'] satisfies (keyof Budget)[]);

function assertBudget({ config }: Shared, session: string, budget: Budget): void {
  const refuse = (why: string) =>
    new SessionError('SESSION_BAD_INPUT', `cannot fork '${session}' with that budget: ${why}`, {
      data: { session },
    });
  if (typeof budget !== 'object' || budget === null) throw refuse('it must be an object of limits');
  for (const [limit, value] of Object.entries(budget)) {
    // An unknown limit would never be reached.
    if (!limits.has(limit))
      throw refuse(`unknown limit '${limit}', expected one of ${[...limits].join(', ')}`);
    if (typeof value !== 'number' || !(value > 0)) throw refuse(`${limit} must be more than 0`);
  }
  if (budget.cost !== undefined && config.cost === undefined) throw refuse('the deck has no cost function');
}

/** The number of forks between a session and its root. Branches do not count. */
export function depthOf(line: Ancestry): number {
  return line.filter(({ info }) => info.parentId !== undefined && !isBranch(info)).length;
}
