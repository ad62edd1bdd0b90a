import type { Inherit, Json } from '@tapedeck/tape';
import { SessionError } from '../errors.ts';
import { assertFields, type Fields } from '../fields.ts';
import { type McpServers, prefixOf, serverOf } from '../mcp/spec.ts';
import type { MergeOptions } from '../merge/merge.ts';
import type { MergeText } from '../merge/text.ts';
import { assertSettings, type CallSettings, mergeSettings } from '../model/call-settings.ts';
import { assertSpec } from '../model/name.ts';
import type { OutputSpec } from '../model/output.ts';
import { type ModelSpec, resolveModel } from '../model/spec.ts';
import type { RuleTexts } from '../permissions/rule.ts';
import type { RunOptions } from '../run/options.ts';
import { modelFor } from '../terms/model-for.ts';
import type { Budget, SessionFacts } from '../terms/terms.ts';
import type { DeckTools } from '../tools/traits.ts';
import type { WorkspaceOptions } from '../workspace/open.ts';
import type { DelegationParts, Delegator } from './parts.ts';
import type { ForkOptions, SpawnedBy } from './spawn.ts';

/** One task of a delegation. Omitted fields are those of the delegation's options. */
export interface DelegateTask<T = Json> {
  /** The child's task, its first message. */
  readonly task: string;
  readonly contextSummary?: string;
  /** How much of the parent the child inherits. */
  readonly inherit?: Inherit;
  /** The child's name. Default: derived from the parent's. */
  readonly name?: string;
  /** Spawn key: the same key on the same parent gives the same child. */
  readonly key?: string;
  /** Name or id of an existing child: the task is its next message. */
  readonly resume?: string;
  readonly model?: ModelSpec;
  /** Settings of its model calls, over those of the delegation's options. */
  readonly settings?: CallSettings;
  readonly instructions?: string;
  /** Names of the tools that the child and the sessions below it may call, among those of its parent. */
  readonly tools?: readonly string[];
  /** Names of those that the child's own model may call; the others it only hands on. Default: all. */
  readonly uses?: readonly string[];
  /** Rules for the calls of the child and of the sessions below it, as in `ForkOptions`. */
  readonly rules?: RuleTexts;
  /** Budget of the child's own model calls. */
  readonly budget?: Budget;
  /** Budget of the child and all its descendants. */
  readonly treeBudget?: Budget;
  /** Schema of its result. The last step of the child requests a result of that form. */
  readonly output?: OutputSpec<T>;
  /** Children of higher priority start first (default 0). */
  readonly priority?: number;
}

/** The fields of `DelegateTask`. */
const taskFields: Fields<DelegateTask> = {
  task: true,
  contextSummary: 'text',
  inherit: true,
  name: 'text',
  key: 'text',
  resume: 'text',
  model: true,
  settings: 'object',
  instructions: 'text',
  tools: 'texts',
  uses: 'texts',
  rules: true,
  budget: true,
  treeBudget: true,
  output: true,
  priority: true,
};

export interface DelegateOptions<T = Json>
  extends Pick<RunOptions, 'model' | 'settings' | 'instructions' | 'maxSteps' | 'useTools'>,
    Pick<DelegateTask<T>, 'uses' | 'rules' | 'budget' | 'treeBudget' | 'output'>,
    WorkspaceOptions {
  /** Tools to use instead of the deck's; or names of the deck's tools that the children may call. */
  readonly tools?: DeckTools | readonly string[];
  /** How much of the parent the children inherit. Default: `all`. */
  readonly inherit?: Inherit;
  /** The number of children that run at once (default 4). */
  readonly concurrency?: number;
  /** Order of the merges: as children complete (default), or as they were spawned. */
  readonly order?: 'completion' | 'spawn';
  /** Merge strategy. Default: `structured` for tasks with an `output`, else `result`. */
  readonly strategy?: 'result' | 'summary' | 'structured' | MergeText;
  /** Start a run of the parent for each result. The delegation does not wait for that run. */
  readonly onComplete?: 'notify_parent';
  readonly onConflict?: MergeOptions['onConflict'];
  /**
   * When a running parent merges: by default between steps if that run started the child, else at its end.
   */
  readonly at?: MergeOptions['at'];
  /**
   * What the run of the parent, and those who watch it, receive of the children: their progress (`summary`, the default),
   * also all their events, or nothing.
   */
  readonly childEvents?: 'summary' | 'all' | 'none';
  readonly signal?: AbortSignal;
  /** The run and the tool call that delegate. `blocking`: the call's result holds the children's outcomes. */
  readonly by?: SpawnedBy & { readonly blocking: boolean };
}

/** The fields of `DelegateOptions`. */
const delegateFields: Fields<DelegateOptions> = {
  model: true,
  settings: 'object',
  instructions: 'text',
  maxSteps: 'limit',
  useTools: 'flag',
  budget: true,
  treeBudget: true,
  output: true,
  workspace: ['shared', 'worktree'],
  repository: 'text',
  tools: true,
  uses: 'texts',
  rules: true,
  inherit: true,
  concurrency: 'limit',
  order: ['completion', 'spawn'],
  strategy: ['result', 'summary', 'structured'],
  onComplete: ['notify_parent'],
  onConflict: ['report', 'refuse'],
  at: ['step', 'idle'],
  childEvents: ['summary', 'all', 'none'],
  signal: 'signal',
  by: 'object',
};

/** The tasks and options of a delegation. */
export interface Delegated {
  readonly tasks: readonly DelegateTask<unknown>[];
  readonly options: DelegateOptions<unknown>;
}

/**
 * Refuses a delegation with an option or a field of a task that does not exist, and a task without text.
 * @throws SESSION_BAD_INPUT
 */
export function assertTasks(parent: string, { tasks, options }: Delegated): void {
  const act = `delegate from '${parent}'`;
  assertFields(options, delegateFields, act);
  assertSettings(options.settings, act);
  const refuse = (why: string) =>
    new SessionError('SESSION_BAD_INPUT', `cannot ${act}: ${why}`, { data: { session: parent } });
  for (const task of tasks) {
    if (typeof task !== 'object' || task === null) throw refuse('a task has no text');
    assertFields(task, taskFields, act);
    assertSettings(task.settings, act);
    if (typeof task.task !== 'string' || task.task.trim() === '') throw refuse('a task has no text');
    if (!Number.isFinite(task.priority ?? 0)) throw refuse('priority must be a number');
    if (task.resume !== undefined && (task.rules ?? options.rules) !== undefined)
      throw refuse('a child that is resumed keeps the rules that it was forked with');
  }
}

/**
 * Refuses, where children run in other processes, what is an object of this one, or a directory of this machine.
 * @throws SESSION_BAD_INPUT
 */
export function assertElsewhere(
  { engine }: DelegationParts,
  parent: string,
  { tasks, options }: Delegated,
): void {
  if (engine.isElsewhere !== true) return;
  const refuse = (why: string) =>
    new SessionError('SESSION_BAD_INPUT', `cannot delegate from '${parent}' to other processes: ${why}`, {
      data: { session: parent },
    });
  for (const { model } of tasks)
    if (typeof (model ?? options.model ?? '') !== 'string')
      throw refuse('name the model instead of passing one');
  if (options.tools !== undefined && !isNames(options.tools))
    throw refuse('name the tools instead of passing them: those of the deck of the worker run');
  if (options.workspace === 'worktree')
    throw refuse('a worktree is of a repository on this machine, and workers can be on others');
}

/** Checks the models of all tasks, so that a missing model fails before anything is forked. */
export async function assertModels(
  parts: DelegationParts,
  parent: SessionFacts,
  { tasks, options }: Delegated,
): Promise<void> {
  const { config, env, store, engine } = parts;
  for (const { model, resume } of tasks) {
    // Keys, files and the model of those without one are where the children run.
    if (engine.isElsewhere === true) {
      assertSpec(model ?? options.model);
      continue;
    }
    const spec = model ?? options.model ?? config.model;
    if (spec !== undefined) await resolveModel(spec, { env, store });
    // A new child carries the model of its parent; one that is resumed carries its own.
    else if (resume === undefined) await modelFor(parts, parent, { options: {} });
  }
}

/**
 * Checks the tool names of all tasks, so that a misspelt name fails before anything is forked.
 * @throws SESSION_BAD_INPUT
 */
export function assertTools(parts: DelegationParts, parent: Delegator, { tasks, options }: Delegated): void {
  for (const task of tasks) {
    const names = [...(task.tools ?? namesOf(options.tools) ?? []), ...(task.uses ?? options.uses ?? [])];
    const own = runOptionsOf(parts, parent, { task, options }).tools;
    const { tools = {}, mcpServers } = parts.config;
    const offered = own === undefined ? { tools, servers: mcpServers } : { tools: own, servers: undefined };
    assertToolNames(names, offered, { act: 'delegate', session: parent.name });
  }
}

/**
 * Refuses the name of a tool that is not offered. Which tools an MCP server has is known only while it runs.
 * @throws SESSION_BAD_INPUT
 */
export function assertToolNames(
  names: readonly string[],
  { tools, servers }: { readonly tools: DeckTools; readonly servers: McpServers | undefined },
  { act, session }: { readonly act: string; readonly session: string },
): void {
  const unknown = names.find((name) => !Object.hasOwn(tools, name) && serverOf(name, servers) === undefined);
  if (unknown === undefined) return;
  const known = [
    ...Object.keys(tools),
    ...Object.keys(servers ?? {}).map((server) => `${prefixOf(server)}…`),
  ];
  throw new SessionError(
    'SESSION_BAD_INPUT',
    `cannot ${act} with tool '${unknown}': ${known.length === 0 ? 'the deck has no tools' : `the tools are ${known.join(', ')}`}`,
    { data: { session, tool: unknown } },
  );
}

/** The settings of a task, over those of the delegation; undefined without any. */
export function settingsOf(
  task: DelegateTask<unknown>,
  options: DelegateOptions<unknown>,
): CallSettings | undefined {
  const settings = mergeSettings(options.settings, task.settings);
  return Object.keys(settings).length === 0 ? undefined : settings;
}

/** The options to fork the child of a task with. */
export function forkOptions(
  task: DelegateTask<unknown>,
  options: DelegateOptions<unknown>,
  blocking: boolean,
): ForkOptions {
  const { tools, onComplete, strategy, workspace, repository } = options;
  const names = task.tools ?? namesOf(tools);
  const given = {
    task: task.task,
    contextSummary: task.contextSummary,
    onComplete,
    inherit: task.inherit ?? options.inherit,
    name: task.name,
    key: task.key,
    model: task.model ?? options.model,
    settings: settingsOf(task, options),
    instructions: task.instructions ?? options.instructions,
    budget: task.budget ?? options.budget,
    treeBudget: task.treeBudget ?? options.treeBudget,
    output: task.output ?? options.output,
    tools: names,
    uses: task.uses ?? options.uses,
    rules: task.rules ?? options.rules,
    workspace,
    repository,
  };
  const requested =
    typeof strategy === 'string' ? strategy : given.output === undefined ? undefined : 'structured';
  return {
    ...(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as ForkOptions),
    ...(requested !== undefined && { strategy: requested }),
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

/** The options to run a child with. Omitted ones are those of the parent's current run. */
export function runOptionsOf(
  parts: DelegationParts,
  parent: Delegator,
  { task, options }: { readonly task: DelegateTask<unknown>; readonly options: DelegateOptions<unknown> },
): RunOptions {
  const running = parts.worker({ session: parent.name, id: parent.id }).request?.options;
  const tools = options.tools === undefined || isNames(options.tools) ? running?.tools : options.tools;
  const model =
    task.model ?? options.model ?? (typeof running?.model === 'object' ? running.model : undefined);
  const settings = settingsOf(task, options);
  return {
    ...(model !== undefined && { model }),
    ...(settings !== undefined && { settings }),
    ...(tools !== undefined && { tools }),
    ...(options.useTools !== undefined && { useTools: options.useTools }),
    ...(options.maxSteps !== undefined && { maxSteps: options.maxSteps }),
  };
}
