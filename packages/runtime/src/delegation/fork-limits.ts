import type { SessionInfo } from '@tapedeck/tape';
import { childName } from '@tapedeck/tape/store';
import { limitsOf } from '../config/config.ts';
import type { Shared } from '../config/shared.ts';
import { SessionError } from '../errors.ts';
import { assertAffordable, isTreeBounded } from '../terms/budget.ts';
import { type Ancestry, type Budget, isBranch } from '../terms/terms.ts';

/** The fields of a requested fork that limits check. */
export interface LimitedFork {
  readonly key?: string;
  readonly name?: string;
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
  const wanted: Budget[] = [];
  const keys = new Set<string>();
  for (const fork of forks) {
    const budgets = budgetsOf(parts, line, fork);
    for (const one of Object.values(budgets)) assertBudget(parts, parent.name, one);
    if (await isKnown(parts, parent, fork)) continue;
    // Forks with the same key are one child.
    if (fork.key !== undefined && keys.has(fork.key)) continue;
    if (fork.key !== undefined) keys.add(fork.key);
    wanted.push(budgets.treeBudget ?? budgets.budget ?? {});
  }
  if (wanted.length === 0) return;
  assertDepth(parts, parent.name, line);
  await assertBreadth(parts, parent, wanted.length);
  await assertAffordable(parts.store, line, wanted);
}

/** Whether the child exists already, by its key. */
async function isKnown({ store }: Shared, parent: SessionInfo, { key, name }: LimitedFork): Promise<boolean> {
  if (key === undefined) return false;
  if (name !== undefined) return (await store.sessions.find(name))?.parentId === parent.id;
  return (await store.sessions.find(childName(parent, key)))?.parentId === parent.id;
}

function assertDepth({ config }: Shared, parent: string, line: Ancestry): void {
  const { maxDepth } = limitsOf(config);
  const depth = depthOf(line) + 1;
  if (depth <= maxDepth) return;
  throw new SessionError(
    'SESSION_LIMIT',
    `cannot fork '${parent}': its child would be ${depth} forks deep, and the limit is ${maxDepth}`,
    { data: { session: parent, limit: 'maxDepth', depth } },
  );
}

async function assertBreadth({ store, config }: Shared, parent: SessionInfo, wanted: number): Promise<void> {
  const { maxChildren } = limitsOf(config);
  if (maxChildren === Number.POSITIVE_INFINITY) return;
  const children = await store.sessions.list({ parent: parent.id, all: true });
  const unfinished = children.filter(
    ({ deliver, delivery, lifecycle }) =>
      deliver !== undefined && delivery === undefined && lifecycle === 'active',
  );
  if (unfinished.length + wanted <= maxChildren) return;
  const times = wanted === 1 ? '' : ` ${wanted} times`;
  throw new SessionError(
    'SESSION_LIMIT',
    `cannot fork '${parent.name}'${times}: ${unfinished.length} of its children are unfinished, and the limit is ${maxChildren}`,
    { data: { session: parent.name, limit: 'maxChildren', children: unfinished.length } },
  );
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
