import { childName, type Deliver, type ForkRequest, type JsonObject, type SessionInfo } from '@tapedeck/tape';
import { isBranch } from './branch.ts';
import { type Budget, needRoom } from './budget.ts';
import { carriedModel } from './carried-model.ts';
import { limitsOf } from './config.ts';
import type { DeckParts } from './deck.ts';
import { SessionError } from './errors.ts';
import type { ModelSpec } from './model-spec.ts';
import { parentOf, type Settings, type Terms } from './settings.ts';
import { workerInstructions } from './worker-prompt.ts';
import { openWorktree, type WorkspaceOptions, withWorktree } from './workspace-open.ts';

/** The form of a result: an AI SDK `Output.object({ schema })`, or anything else that tells its JSON Schema in the same way. */
export interface OutputSpec {
  readonly responseFormat: PromiseLike<{ readonly type: string; readonly schema?: unknown } | undefined>;
}

export interface ForkOptions
  extends Omit<
      ForkRequest,
      | 'spawnCall'
      | 'settings'
      | 'terms'
      | 'asked'
      | 'window'
      | 'worktree'
      | 'fresh'
      | 'title'
      | 'ephemeral'
      | 'whenIdle'
      | 'whereShown'
    >,
    WorkspaceOptions {
  readonly deliver?: Deliver;
  /** How much of what lies before the cut the child inherits, where `since` does not say: everything, its last messages, or nothing (K31). */
  readonly context?: 'full' | 'fresh' | { readonly window: number };
  readonly fresh?: boolean;
  /** What its model is told before the messages; by default what its parent's is told, or, of a child that does not inherit everything, that it is a worker. */
  readonly instructions?: string;
  readonly model?: ModelSpec;
  /** Names of the tools that it may call, of those that its parent may. */
  readonly tools?: readonly string[];
  /** What its own model calls may take. */
  readonly budget?: Budget;
  /** What it and all under it may take. */
  readonly treeBudget?: Budget;
  /** What its last step is asked for: its result, in this form. */
  readonly output?: OutputSpec;
  /** How its result is merged, whoever does it. */
  readonly strategy?: Terms['strategy'];
  /** What leaving an `await using` block does to a child that was neither finished nor discarded (default `fail`). */
  readonly onUnmerged?: 'fail' | 'discard' | 'keep';
}

/** A child that was forked, and the directory of its worktree, if it has one. */
export interface Spawned {
  readonly info: SessionInfo;
  readonly directory: string | undefined;
}

/** The run and call of a parent that ask for a child. */
export interface SpawnedBy {
  readonly run: string;
  readonly toolCallId: string;
}

/**
 * Forks a session for work, within the limits of the deck and what is left of the budgets above it.
 * @throws SESSION_LIMIT, SESSION_BAD_INPUT, and what forking throws, before anything is written
 */
export async function spawn(
  parts: DeckParts,
  parent: SessionInfo,
  { options, by }: { readonly options: ForkOptions; readonly by?: SpawnedBy | undefined },
): Promise<Spawned> {
  const { store, config } = parts;
  const { context, fresh, instructions, model, tools, output, onUnmerged, strategy, ...request } = options;
  const budget = options.budget ?? config.budget?.child;
  const treeBudget = options.treeBudget ?? config.budget?.tree;
  for (const one of [budget, treeBudget]) checkBudget(parts, parent.name, one);
  if (!(await isKnown(parts, parent, options))) {
    await needDepth(parts, parent);
    await needBreadth(parts, parent);
    await needRoom(store, parent, treeBudget ?? budget ?? {});
  }
  const isFresh = fresh === true || context === 'fresh';
  const isPart = isFresh || request.since !== undefined || typeof context === 'object';
  const settings = await settingsFor(parts, parent, { isPart, instructions, model, tools });
  const schema = await schemaOf(output);
  const terms: Terms = {
    context: isPart ? 'part' : 'whole',
    ...(by !== undefined && { run: by.run }),
    ...(budget !== undefined && { budget }),
    ...(treeBudget !== undefined && { treeBudget }),
    ...(schema !== undefined && { output: schema }),
    ...(strategy !== undefined && { strategy }),
  };
  const { budget: _, treeBudget: __, ...place } = request;
  const asked: JsonObject = {
    ...(instructions !== undefined && { instructions }),
    ...(typeof model === 'string' && { model }),
    ...(tools !== undefined && { tools: [...tools] }),
    ...(options.budget !== undefined && { budget: { ...options.budget } }),
    ...(options.treeBudget !== undefined && { treeBudget: { ...options.treeBudget } }),
    ...(schema !== undefined && { output: schema }),
  };
  const { workspace, repository, ...where } = place;
  const worktree = await withWorktree(parts, parent.id, {
    ...(workspace !== undefined && { workspace }),
    ...(repository !== undefined && { repository }),
  });
  const forked = await store.fork(parent.id, {
    ...worktree,
    ...where,
    ...(isFresh && { fresh: true }),
    ...(typeof context === 'object' && { window: context.window }),
    ...(Object.keys(settings).length > 0 && { settings: settings as JsonObject }),
    terms: terms as unknown as JsonObject,
    ...(Object.keys(asked).length > 0 && { asked }),
    ...(by !== undefined && { spawnCall: by.toolCallId }),
  });
  const info = await store.find(forked.id);
  if (info === undefined) throw new TypeError('a child that was forked exists');
  return { info, directory: await openWorktree(parts, info.id) };
}

async function settingsFor(
  parts: DeckParts,
  parent: SessionInfo,
  {
    isPart,
    instructions,
    model,
    tools,
  }: { [K in 'instructions' | 'model' | 'tools']: ForkOptions[K] | undefined } & { isPart: boolean },
): Promise<Settings> {
  const running = parts.worker(parent).job?.options;
  const told = instructions ?? (isPart ? workerInstructions : running?.instructions);
  // What it inherits names the parent's model, unless it inherits nothing that does.
  const named =
    model ?? (isPart ? (running?.model ?? (await carriedModel(parts.store, parent.id))) : undefined);
  return {
    ...(told !== undefined && { instructions: told }),
    ...(typeof named === 'string' && { model: named }),
    ...(tools !== undefined && { tools: [...tools] }),
  };
}

async function schemaOf(output: OutputSpec | undefined): Promise<JsonObject | undefined> {
  if (output === undefined) return undefined;
  const format = await output.responseFormat;
  if (format?.type === 'json' && format.schema !== undefined) return format.schema as JsonObject;
  throw new SessionError('SESSION_BAD_INPUT', 'cannot ask for that output: it has no JSON Schema', {});
}

/** A child that is there already is not another one. */
async function isKnown(
  { store }: DeckParts,
  parent: SessionInfo,
  { key, name }: ForkOptions,
): Promise<boolean> {
  if (key === undefined) return false;
  if (name !== undefined) return (await store.find(name))?.parentId === parent.id;
  return (await store.find(childName(parent, key)))?.parentId === parent.id;
}

async function needDepth({ store, config }: DeckParts, parent: SessionInfo): Promise<void> {
  const { maxDepth } = limitsOf(config);
  const depth = (await depthOf(store, parent)) + 1;
  if (depth <= maxDepth) return;
  throw new SessionError(
    'SESSION_LIMIT',
    `cannot fork '${parent.name}': its child would be ${depth} forks deep, and the limit is ${maxDepth}`,
    { data: { session: parent.name, limit: 'maxDepth', depth } },
  );
}

async function needBreadth({ store, config }: DeckParts, parent: SessionInfo): Promise<void> {
  const { maxChildren } = limitsOf(config);
  if (maxChildren === Number.POSITIVE_INFINITY) return;
  const children = await store.sessions({ parent: parent.id, all: true });
  const unfinished = children.filter(
    ({ deliver, delivery, lifecycle }) =>
      deliver !== undefined && delivery === undefined && lifecycle === 'active',
  );
  if (unfinished.length < maxChildren) return;
  throw new SessionError(
    'SESSION_LIMIT',
    `cannot fork '${parent.name}': ${unfinished.length} of its children are unfinished, and the limit is ${maxChildren}`,
    { data: { session: parent.name, limit: 'maxChildren', children: unfinished.length } },
  );
}

function checkBudget({ config }: DeckParts, session: string, budget: Budget | undefined): void {
  if (budget === undefined) return;
  const refuse = (why: string) =>
    new SessionError('SESSION_BAD_INPUT', `cannot fork '${session}' with that budget: ${why}`, {
      data: { session },
    });
  for (const [limit, value] of Object.entries(budget))
    if (typeof value !== 'number' || !(value > 0)) throw refuse(`${limit} must be more than 0`);
  if (budget.cost !== undefined && config.cost === undefined)
    throw refuse('the deck has no cost function, so that nobody knows what a call costs');
}

/** How many forks for work lie between a session and its root: a branch is as deep as its parent. */
export async function depthOf(store: DeckParts['store'], session: SessionInfo): Promise<number> {
  let depth = 0;
  for (let at: SessionInfo | undefined = session; at !== undefined; at = await parentOf(store, at))
    if (at.parentId !== undefined && !isBranch(at)) depth += 1;
  return depth;
}
