import type { Point } from '@tapedeck/tape';
import { SessionError } from '../errors.ts';
import { assertFields, type Fields } from '../fields.ts';
import type { MergeOptions } from '../merge/merge.ts';
import type { MergeText } from '../merge/text.ts';
import { type ModelSpec, resolveModel } from '../model/spec.ts';
import type { RunOptions } from '../run/options.ts';
import type { Budget } from '../terms/terms.ts';
import type { DeckTools } from '../tools/traits.ts';
import type { WorkspaceOptions } from '../workspace/open.ts';
import type { DelegationParts, Delegator } from './parts.ts';
import type { ForkOptions, OutputSpec, SpawnedBy } from './spawn.ts';

/** One piece of work for one child. What it does not say is as the options of the delegation say. */
export interface DelegateTask {
  /** What the child is to do. */
  readonly task: string;
  readonly contextSummary?: string;
  /** The child's name; by default derived from the parent's. */
  readonly name?: string;
  /** The same key on the same parent is the same child. */
  readonly key?: string;
  /** A child that is there already, by its name or id: the task is its next message. */
  readonly resume?: string;
  readonly model?: ModelSpec;
  readonly instructions?: string;
  /** Names of the tools that it may call, of those that its parent may. */
  readonly tools?: readonly string[];
  /** What its own model calls may take. */
  readonly budget?: Budget;
  /** What it and all under it may take. */
  readonly treeBudget?: Budget;
  /** The form of its result: its last step is asked for it. */
  readonly output?: OutputSpec;
  /** Those of a higher priority are started first (default 0). */
  readonly priority?: number;
}

/** The fields of `DelegateTask`. */
const taskFields: Fields<DelegateTask> = {
  task: true,
  contextSummary: true,
  name: true,
  key: true,
  resume: true,
  model: true,
  instructions: true,
  tools: true,
  budget: true,
  treeBudget: true,
  output: true,
  priority: true,
};

export interface DelegateOptions
  extends Pick<RunOptions, 'model' | 'instructions' | 'maxSteps' | 'useTools'>,
    Pick<DelegateTask, 'budget' | 'treeBudget' | 'output'>,
    WorkspaceOptions {
  /** Tools that are offered instead of the deck's; or the names of those of the deck that the children may call. */
  readonly tools?: DeckTools | readonly string[];
  /** Where what the children inherit begins. */
  readonly since?: Point;
  readonly fresh?: boolean;
  /** How much they inherit, where `since` does not say (K31). */
  readonly context?: ForkOptions['context'];
  /** How many children run at once (default 4). */
  readonly concurrency?: number;
  /** In which order results are merged: as they come, or as they were spawned. */
  readonly order?: 'completion' | 'spawn';
  /** How results are merged: `structured` by default for tasks that have an `output`. */
  readonly strategy?: 'result' | 'summary' | 'structured' | MergeText;
  /** Each result starts a run of the parent, which nobody waits for (B22, K32). */
  readonly onComplete?: 'notify_parent';
  readonly onConflict?: MergeOptions['onConflict'];
  /** When a parent that is being run takes results in: by default between two steps if that run asked for them, else at its end. */
  readonly at?: MergeOptions['at'];
  readonly signal?: AbortSignal;
  /** The run and the tool call that ask for it; `blocking`: the call's result is what the children come to. */
  readonly by?: SpawnedBy & { readonly blocking: boolean };
}

/** The fields of `DelegateOptions`. */
const delegateFields: Fields<DelegateOptions> = {
  model: true,
  instructions: true,
  maxSteps: true,
  useTools: true,
  budget: true,
  treeBudget: true,
  output: true,
  workspace: true,
  repository: true,
  tools: true,
  since: true,
  fresh: true,
  context: true,
  concurrency: true,
  order: true,
  strategy: true,
  onComplete: true,
  onConflict: true,
  at: true,
  signal: true,
  by: true,
};

/** What is delegated, and how. */
export interface Delegated {
  readonly tasks: readonly DelegateTask[];
  readonly options: DelegateOptions;
}

/**
 * Refuses a delegation with an option or a field of a task that does not exist, and a task without text.
 * @throws SESSION_BAD_INPUT
 */
export function assertTasks(parent: string, { tasks, options }: Delegated): void {
  const act = `delegate from '${parent}'`;
  assertFields(options, delegateFields, act);
  for (const task of tasks) {
    assertFields(task, taskFields, act);
    if (typeof task.task !== 'string' || task.task.trim() === '')
      throw new SessionError('SESSION_BAD_INPUT', `cannot ${act}: a task has no text`, {
        data: { session: parent },
      });
  }
}

/** A model that cannot be used must fail before anything is forked. */
export async function assertModels(
  { config, env, store }: DelegationParts,
  tasks: readonly DelegateTask[],
  options: DelegateOptions,
): Promise<void> {
  const { getModel } = await import('../model/model.ts');
  for (const { task, model } of tasks) {
    const spec = model ?? options.model ?? config.model;
    const source = spec === undefined ? undefined : await resolveModel(spec, { env, store });
    getModel(source?.(''), task);
  }
}

/** A name that no tool has would leave a child without the one that was meant. */
export function assertTools(parts: DelegationParts, parent: Delegator, { tasks, options }: Delegated): void {
  for (const task of tasks) {
    const names = task.tools ?? namesOf(options.tools) ?? [];
    const offered = runOptionsOf(parts, parent, { task, options }).tools ?? parts.config.tools ?? {};
    const unknown = names.find((name) => !Object.hasOwn(offered, name));
    if (unknown === undefined) continue;
    const known = Object.keys(offered);
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot delegate with tool '${unknown}': there is ${known.length === 0 ? 'none' : `only ${known.join(', ')}`}`,
      { data: { session: parent.name, tool: unknown } },
    );
  }
}

/** What a child is forked with. */
export function forkOptions(task: DelegateTask, options: DelegateOptions, blocking: boolean): ForkOptions {
  const { since, fresh, context, tools, onComplete, strategy, workspace, repository } = options;
  const names = task.tools ?? namesOf(tools);
  const given = {
    name: task.name,
    key: task.key,
    model: task.model ?? options.model,
    instructions: task.instructions ?? options.instructions,
    budget: task.budget ?? options.budget,
    treeBudget: task.treeBudget ?? options.treeBudget,
    output: task.output ?? options.output,
    tools: names,
    since,
    fresh,
    context,
    workspace,
    repository,
  };
  const asked =
    typeof strategy === 'string' ? strategy : given.output === undefined ? undefined : 'structured';
  return {
    ...(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as ForkOptions),
    ...(asked !== undefined && { strategy: asked }),
    intention: {
      nextSteps: task.task,
      ...(task.contextSummary !== undefined && { contextSummary: task.contextSummary }),
      ...(onComplete !== undefined && { triggerOnComplete: onComplete }),
    },
    deliver: blocking ? 'tool-result' : onComplete === 'notify_parent' ? 'merge+turn' : 'merge',
  };
}

function namesOf(tools: DelegateOptions['tools']): readonly string[] | undefined {
  if (tools === undefined) return undefined;
  return isNames(tools) ? tools : Object.keys(tools);
}

function isNames(tools: DeckTools | readonly string[]): tools is readonly string[] {
  return Array.isArray(tools);
}

/** What a child is run with. What it does not say itself is as in the run of its parent that is under way. */
export function runOptionsOf(
  parts: DelegationParts,
  parent: Delegator,
  { task, options }: { readonly task: DelegateTask; readonly options: DelegateOptions },
): RunOptions {
  const running = parts.worker(parent).request?.options;
  const tools = options.tools === undefined || isNames(options.tools) ? running?.tools : options.tools;
  const model =
    task.model ?? options.model ?? (typeof running?.model === 'object' ? running.model : undefined);
  return {
    ...(model !== undefined && { model }),
    ...(tools !== undefined && { tools }),
    ...(options.useTools !== undefined && { useTools: options.useTools }),
    ...(options.maxSteps !== undefined && { maxSteps: options.maxSteps }),
  };
}
