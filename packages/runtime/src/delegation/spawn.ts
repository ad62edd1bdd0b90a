import type { ForkRequest, JsonObject, SessionInfo, TapeStore } from '@tapedeck/tape';
import { workerInstructions } from '@tapedeck/tape/internal';
import type { Deliver, ForkPreview, Intention } from '@tapedeck/tape/store';
import { runPoint } from '../crash-point.ts';
import { SessionError } from '../errors.ts';
import type { Fields } from '../fields.ts';
import { assertSettings, type CallSettings, mergeSettings, settingsMeta } from '../model/call-settings.ts';
import { assertSpec } from '../model/name.ts';
import { type OutputSpec, outputSchema } from '../model/output.ts';
import type { ModelSpec } from '../model/spec.ts';
import type { RuleTexts } from '../permissions/rule.ts';
import { instructionsOf } from '../run/instructions.ts';
import { carriedBy } from '../terms/carried-model.ts';
import { ruleTexts } from '../terms/permits.ts';
import { sendersOf } from '../terms/senders.ts';
import {
  type Ancestry,
  assertCeiling,
  type Budget,
  type SessionFacts,
  type Settings,
  type Terms,
} from '../terms/terms.ts';
import { currentCall } from '../tools/current-call.ts';
import { openWorktree, type WorkspaceOptions, withWorktree } from '../workspace/open.ts';
import { assertAllowed, budgetsOf, depthOf } from './fork-limits.ts';
import type { ChildInfo, ChildOptions, DelegationParts } from './parts.ts';

export interface ForkOptions<T = unknown>
  extends Omit<
      ForkRequest,
      | 'spawnCall'
      | 'settings'
      | 'terms'
      | 'asked'
      | 'intention'
      | 'worktree'
      | 'title'
      | 'ephemeral'
      | 'whenIdle'
      | 'whereShown'
      | 'expectHead'
      | 'first'
    >,
    WorkspaceOptions,
    Pick<ChildOptions, 'onUnmerged'> {
  /** How the parent receives the result when the child ends, whichever process runs it. Default: the caller merges. */
  readonly deliver?: Deliver;
  /** The child's task, which its model sees as a user message. */
  readonly task?: string;
  /** Background of the task, which the model sees before it. */
  readonly contextSummary?: string;
  /** The result starts a run of the parent: the same as `deliver: 'merge+turn'`. */
  readonly onComplete?: 'notify_parent';
  /**
   * The child's instructions. Default: the parent's, or those of a worker for a child that inherits a part or
   * nothing.
   */
  readonly instructions?: string;
  readonly model?: ModelSpec;
  /** Settings of its model calls, over those that the parent carries. */
  readonly settings?: CallSettings;
  /** Names of the tools that the child and the sessions below it may call, among those of its parent. */
  readonly tools?: readonly string[];
  /** Names of those that the child's own model may call; the others it only hands on. Default: all. */
  readonly uses?: readonly string[];
  /** Rules for the calls of the child and of the sessions below it. What those of its parent deny or ask, they do not lift. */
  readonly rules?: RuleTexts;
  /** Budget of the child's own model calls. */
  readonly budget?: Budget;
  /** Budget of the child and all its descendants. */
  readonly treeBudget?: Budget;
  /** Schema of its result, which its last step gives. */
  readonly output?: OutputSpec<T>;
  /** Default strategy of its merge. */
  readonly strategy?: Terms['strategy'];
}

/** The fields of `ForkOptions`. */
export const forkFields: Fields<ForkOptions> = {
  inherit: true,
  cut: true,
  name: 'text',
  key: 'text',
  task: 'text',
  contextSummary: 'text',
  onComplete: ['notify_parent'],
  kind: 'text',
  done: 'object',
  deliver: ['merge', 'merge+turn', 'notify', 'tool-result'],
  instructions: 'text',
  model: true,
  settings: 'object',
  tools: 'texts',
  uses: 'texts',
  rules: true,
  budget: true,
  treeBudget: true,
  output: true,
  strategy: ['result', 'summary', 'structured'],
  onUnmerged: ['fail', 'discard', 'keep'],
  workspace: ['shared', 'worktree'],
  repository: true,
};

/**
 * The options with `deliver`, which `onComplete` implies.
 * @throws SESSION_BAD_INPUT when they contradict each other
 */
export function withDelivery(parent: string, options: ForkOptions): ForkOptions {
  const { deliver, onComplete } = options;
  if (onComplete === undefined) return options;
  if (deliver === undefined) return { ...options, deliver: 'merge+turn' };
  if (deliver === 'merge+turn' || deliver === 'tool-result') return options;
  throw new SessionError(
    'SESSION_BAD_INPUT',
    `cannot fork '${parent}': onComplete '${onComplete}' is deliver 'merge+turn', not '${deliver}'`,
    { data: { session: parent } },
  );
}

/** A forked child, and the directory of its worktree, if it has one. */
export interface SpawnedChild {
  readonly info: ChildInfo;
  /** The number of forks between it and its root, branches not counted. */
  readonly depth: number;
  readonly directory: string | undefined;
  /** Whether the key had made the child before. */
  readonly repeated: boolean;
}

/** The parent's run and tool call that fork a child. */
export interface SpawnedBy {
  readonly run: string;
  readonly toolCallId: string;
}

/** A requested fork, and the call that requests it. */
interface SpawnRequest {
  readonly options: ForkOptions;
  readonly by?: SpawnedBy | undefined;
  /** What the database commits with the child: see `Lineage.fork`. */
  readonly beside?: Parameters<TapeStore['lineage']['fork']>[2];
}

/**
 * Forks a session within the deck's limits and the remaining budgets of its ancestors.
 * @throws SESSION_LIMIT, SESSION_BAD_INPUT, SESSION_NO_MODEL when `model` is not the name of one, and the errors of
 *   `store.fork`, before anything is written
 */
export async function spawn(
  parts: DelegationParts,
  line: Ancestry,
  spawning: SpawnRequest,
): Promise<SpawnedChild> {
  await assertAllowed(parts, line, [spawning.options]);
  const request = await requestFor(parts, line, spawning);
  const beside = spawning.beside === undefined ? [] : [spawning.beside];
  const forked = await parts.store.lineage.fork(line[0].info.id, request, ...beside);
  runPoint('spawn/forked');
  const { session, id, tape, parent, base } = forked;
  const info = {
    session,
    id,
    tape,
    kind: request.kind ?? 'subagent',
    parent,
    parentId: line[0].info.id,
    base,
  };
  parts.worker(info).descendFrom(line);
  const directory = request.worktree === undefined ? undefined : await openWorktree(parts, info.id);
  return { info, depth: depthOf(line) + 1, directory, repeated: forked.repeated };
}

/**
 * Checks that all of these forks can be made, so that none is made without the others. Returns what each would write
 * now, and writes nothing.
 * @throws the errors of `spawn`
 */
export async function previewForks(
  parts: DelegationParts,
  line: Ancestry,
  forks: readonly SpawnRequest[],
): Promise<readonly ForkPreview[]> {
  const [{ info: parent }] = line;
  const previews: ForkPreview[] = [];
  await assertAllowed(
    parts,
    line,
    forks.map(({ options }) => options),
  );
  const names = new Set<string>();
  const keyed = new Map<string, string>();
  for (const fork of forks) {
    const request = await requestFor(parts, line, fork);
    previews.push(await parts.store.lineage.previewFork(parent.id, request));
    const { key, name } = fork.options;
    const text = JSON.stringify(request);
    if (key !== undefined && (keyed.get(key) ?? text) !== text)
      throw new SessionError('SESSION_BAD_INPUT', `cannot fork two children under the key '${key}'`, {
        data: { session: parent.session, key },
      });
    if (key !== undefined) keyed.set(key, text);
    if (name === undefined || key !== undefined) continue;
    if (names.has(name))
      throw new SessionError('SESSION_BAD_INPUT', `cannot fork into '${name}' twice`, {
        data: { session: parent.session, name },
      });
    names.add(name);
  }
  return previews;
}

/** The sessions whose rules bind the run that asks for a child: what it may not do for others, no child may do for it. */
export async function sendersOfRun(
  { store }: Pick<DelegationParts, 'store'>,
  parent: SessionFacts,
  by: SpawnRequest['by'],
): Promise<readonly string[]> {
  const isByRun = by !== undefined || currentCall()?.session === parent.info.session;
  return isByRun ? await sendersOf(store, parent) : [];
}

async function requestFor(
  parts: DelegationParts,
  line: Ancestry,
  { options, by }: SpawnRequest,
): Promise<ForkRequest> {
  const [parent] = line;
  assertSpec(options.model);
  assertSettings(options.settings, `fork '${parent.info.session}'`);
  const {
    instructions,
    model,
    settings: call,
    tools,
    uses,
    rules: given,
    output,
    onUnmerged,
    strategy,
    ...request
  } = options;
  assertCeiling(line, { tools, uses }, `fork '${parent.info.session}'`);
  const rules = given === undefined ? undefined : ruleTexts(given, `fork '${parent.info.session}'`);
  const budgets = budgetsOf(parts, line, options);
  const isPart = request.inherit !== undefined && request.inherit !== 'all';
  const kept = await settingsFor(parts, parent, { isPart, instructions, model, call, tools, uses });
  const settings: Settings = { ...kept, ...(rules !== undefined && { rules }) };
  const schema = output === undefined ? undefined : await outputSchema(output);
  const senders = await sendersOfRun(parts, parent, by);
  const terms: Terms = {
    context: isPart ? 'part' : 'whole',
    ...(by !== undefined && { run: by.run }),
    ...(senders.length > 0 && { senders }),
    ...budgets,
    ...(schema !== undefined && { output: schema }),
    ...(strategy !== undefined && { strategy }),
  };
  const { budget: _, treeBudget: __, task, contextSummary, onComplete, ...place } = request;
  const intention: Intention = {
    ...(task !== undefined && { nextSteps: task }),
    ...(contextSummary !== undefined && { contextSummary }),
    ...(onComplete !== undefined && { triggerOnComplete: onComplete }),
  };
  const requested: JsonObject = {
    ...(instructions !== undefined && { instructions }),
    ...(typeof model === 'string' && { model }),
    ...settingsMeta(call ?? {}),
    ...(tools !== undefined && { tools: [...tools] }),
    ...(uses !== undefined && { uses: [...uses] }),
    ...(rules !== undefined && { rules }),
    ...(options.budget !== undefined && { budget: { ...options.budget } }),
    ...(options.treeBudget !== undefined && { treeBudget: { ...options.treeBudget } }),
    ...(schema !== undefined && { output: schema }),
  };
  const { workspace, repository, ...where } = place;
  const worktree = await withWorktree(parts, parent.info.session, {
    ...(workspace !== undefined && { workspace }),
    ...(repository !== undefined && { repository }),
  });
  return {
    ...worktree,
    ...where,
    ...(Object.keys(intention).length > 0 && { intention }),
    ...(Object.keys(settings).length > 0 && { settings: settings as JsonObject }),
    terms: terms as unknown as JsonObject,
    ...(Object.keys(requested).length > 0 && { asked: requested }),
    ...(by !== undefined && { spawnCall: by.toolCallId }),
  };
}

async function settingsFor(
  parts: DelegationParts,
  parent: SessionFacts,
  {
    isPart,
    instructions,
    model,
    call: given,
    tools,
    uses,
  }: { [K in 'instructions' | 'model' | 'tools' | 'uses']: ForkOptions[K] | undefined } & {
    isPart: boolean;
    call: CallSettings | undefined;
  },
): Promise<Settings> {
  const running = parts.worker(parent.info).request?.options;
  const text = instructions ?? (isPart ? workerInstructions : await parentInstructions(parts, parent.info));
  // A child that inherits everything finds the parent's model and settings in the inherited messages.
  const carried = isPart ? await carriedBy(parts.store, parent) : undefined;
  const named = model ?? (isPart ? (running?.model ?? carried?.model) : undefined);
  const call = mergeSettings(carried?.settings, isPart ? running?.settings : undefined, given);
  return {
    ...(text !== undefined && { instructions: text }),
    ...(typeof named === 'string' && { model: named }),
    ...(Object.keys(call).length > 0 && { call }),
    ...(tools !== undefined && { tools: [...tools] }),
    ...(uses !== undefined && { uses: [...uses] }),
  };
}

/**
 * The parent's instructions, for a child that shares the parent's cached prompt: those of the last model call
 * of the current run, because files may have changed since. Undefined when the child's own instructions are
 * the same.
 */
async function parentInstructions(parts: DelegationParts, parent: SessionInfo): Promise<string | undefined> {
  const { request, instructions } = parts.worker(parent);
  if (parts.config.prompt === undefined) return request?.options.instructions;
  return instructions ?? (await instructionsOf(parts, parent, request?.options)).text;
}
