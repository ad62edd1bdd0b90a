/**
 * The configuration of a deck: its type and defaults (`config.ts`), its checks (`check.ts`), the calls of its hooks
 * (`hooks.ts`), and `shared.ts`, which is what most acts of a deck need. Where a configuration comes from is the
 * caller's: the command line reads files, a library passes an object. Imports `compaction` and what lies below.
 */
import type { Awaitable, Json, ViewPolicy, ViewWindow } from '@tapedeck/tape';
import type { CompactionConfig } from '../compaction/policy.ts';
import type { ModelSpec } from '../model/spec.ts';
import type { PromptConfig } from '../prompt/config.ts';
import type { Sections } from '../prompt/system-prompt.ts';
import type { Decision } from '../stream/call.ts';
import type { Budget } from '../terms/terms.ts';
import type { DeckTools } from '../tools/traits.ts';
import type { CostOf } from '../usage/usage.ts';
import type { Hooks } from './hooks.ts';

/** What the sessions of a deck run with. */
export interface DeckConfig extends CompactionConfig {
  readonly model?: ModelSpec;
  /** The model that writes summaries; by default the session's own (K37). */
  readonly summarizer?: ModelSpec;
  /** Tools of the AI SDK, by the names under which models call them. Children get them too. */
  readonly tools?: DeckTools;
  /** What every model call is told before the messages. Without `prompt` it is all that it is told there. */
  readonly instructions?: string | Sections;
  /** What it is told with them: of the project, of skills, of where it works. */
  readonly prompt?: PromptConfig;
  readonly limits?: Limits;
  /** What of a session its model is shown, from the last boundary on: all that there is, else the newest part of it. */
  readonly view?: ViewWindow | readonly ViewWindow[];
  /** What each child may take that is given no budget of its own, alone and with all under it. */
  readonly budget?: { readonly child?: Budget; readonly tree?: Budget };
  /** What a model call cost, in a unit of your own; `undefined` where that is not known. `model` is the model's own name. */
  readonly cost?: CostOf;
  /** Asked before a tool that needs approval is run. `undefined`: the call waits for an answer. */
  readonly onApproval?: (request: ApprovalRequest) => Awaitable<Decision | undefined>;
  readonly hooks?: Hooks;
}

/** Bounds of a run. What is left out is as in `defaultLimits`. */
export interface Limits {
  /** Model calls at most before a run is halted, `Infinity` for no bound (K27). */
  readonly maxSteps?: number;
  /** How long one tool call may take, in milliseconds (X61). */
  readonly toolTimeoutMs?: number;
  /** How many tool calls of one answer run at once. */
  readonly concurrentTools?: number;
  /** How often a model call that failed for a passing reason is tried again. */
  readonly retries?: number;
  /** How long to wait before the first of these, in milliseconds; before each further one longer. */
  readonly retryDelayMs?: number;
  /** How many forks may lie between a session and its root (default 5). */
  readonly maxDepth?: number;
  /** How many children of one session may be unfinished at a time. */
  readonly maxChildren?: number;
  /** How many children of one depth this process runs at once. */
  readonly concurrentChildren?: number;
  /** How many model calls this process makes at once: of each provider, or of the providers that are named. */
  readonly concurrentCalls?: number | Readonly<Record<string, number>>;
  /** How long an aborted run waits for tools that do not stop, in milliseconds. */
  readonly abortGraceMs?: number;
}

/** A tool call that somebody has to allow. */
export interface ApprovalRequest {
  readonly session: string;
  /** The session that it was forked from. */
  readonly parent?: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: Json;
}

/** The limits of a deck that sets none. */
export const defaultLimits: Required<Limits> = {
  maxSteps: 10,
  toolTimeoutMs: 30_000,
  concurrentTools: 10,
  retries: 2,
  retryDelayMs: 1_000,
  abortGraceMs: 5_000,
  maxDepth: 5,
  maxChildren: Number.POSITIVE_INFINITY,
  concurrentChildren: Number.POSITIVE_INFINITY,
  concurrentCalls: Number.POSITIVE_INFINITY,
};

/** Gives a configuration its type: the default export of `tape.config.mts`. It changes and checks nothing. */
export function defineDeck(config: DeckConfig): DeckConfig {
  return config;
}

/** The limits of a configuration, with the defaults for those that it does not set. */
export function limitsOf({ limits }: DeckConfig): Required<Limits> {
  return { ...defaultLimits, ...withoutGaps(limits) };
}

/** Which part of its sessions a deck shows to their models. */
export function viewPolicyOf({ view = [] }: DeckConfig): ViewPolicy {
  return ['last-boundary', ...[view].flat()];
}

/** Where the parts of a configuration come from. */
export interface ConfigLayers {
  /** The command line. */
  readonly flags?: DeckConfig;
  /** `tape.config.mts`. */
  readonly file?: DeckConfig;
  /** `config.yaml` of the tape home. */
  readonly yaml?: DeckConfig;
}

/** One configuration: what the command line says, else the file, else the home. Limits are taken one by one. */
export function mergeConfig({ flags = {}, file = {}, yaml = {} }: ConfigLayers): DeckConfig {
  const layers = [yaml, file, flags];
  const limits: Limits = Object.assign({}, ...layers.map((layer) => withoutGaps(layer.limits)));
  const merged: DeckConfig = Object.assign({}, ...layers.map(withoutGaps));
  return { ...merged, ...(Object.keys(limits).length > 0 && { limits }) };
}

/** A field that is there with the value `undefined`, as plain JavaScript may have it, says nothing. */
function withoutGaps<T extends object>(given: T | undefined): Partial<T> {
  return Object.fromEntries(
    Object.entries(given ?? {}).filter(([, value]) => value !== undefined),
  ) as Partial<T>;
}
