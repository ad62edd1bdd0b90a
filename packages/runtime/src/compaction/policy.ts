import type { ModelWindow, Windows } from '../model/window.ts';

/** The name of the event with which the model of a run asks for a summary before its next call. */
export const compactionRequested = 'compaction/requested';

/**
 * Policies by name: when a session is compacted, and how much of its end stays. `reserve` keeps room for the
 * longest answer of the model, `reserve-16k` keeps 16,384 tokens; `at-85` allows 85 % of the window, `at-90`
 * allows 90 % of what the longest answer leaves.
 */
export const compactionPresets = ['reserve', 'reserve-16k', 'at-85', 'at-90'] as const;

/**
 * A named policy of when to compact, and how much to keep. `reserve` (default): when an answer of full length no longer
 * fits into the window. `reserve-16k`: when fewer than 16,384 tokens are left. `at-85`: over 85 % of the window.
 * `at-90`: over 90 % of what the longest answer leaves of it.
 */
export type CompactionPreset = (typeof compactionPresets)[number];

/** How much of the end of a session stays verbatim. */
export type Keep =
  /**
   * The last `turns` turns, if they take at most `share` of the usable window (default 0.25). Otherwise the
   * turns that fit, at least one; with `over: 'split'` a last turn that does not fit is cut.
   */
  | { readonly turns: number; readonly share?: number; readonly over?: 'fewer' | 'split' }
  | { readonly tokens: number }
  /** A share of the usable window. */
  | { readonly ratio: number };

/** When large outputs of calls are pruned from the view, and which outputs stay. */
export interface PrunePolicy {
  /** The share of the window at which a run prunes by itself (default 0.6). */
  readonly threshold?: number;
  /** Names of tools whose outputs stay. */
  readonly protect?: readonly string[];
  /** The newest output of this many recently used files stays (default 5). */
  readonly keepFiles?: number;
  /** The smallest output that is pruned, in tokens (default 200). */
  readonly minTokens?: number;
}

/** Bounds of the model call that writes a summary. */
export interface SummaryLimits {
  /** The longest summary, in tokens (default 4,096; with `share`, none). */
  readonly maxOutputTokens?: number;
  /** The largest share of its model's window that a summary takes (default 0.25). */
  readonly share?: number;
  readonly timeoutMs?: number;
  readonly temperature?: number;
}

/** What to do when the transcript is too large for the summarizer. The steps run in this order. */
export interface SmartRecovery {
  readonly pruneToolOutputs?: boolean;
  readonly chunkedSummarize?: boolean;
  readonly dropMiddle?: boolean;
}

/** When and how a session is compacted. A missing field has the value of the preset. */
export interface CompactionPolicy {
  /** Default `reserve`. */
  readonly preset?: CompactionPreset;
  /** False: compact only on request, and when a model refuses a prompt as too large. */
  readonly enabled?: boolean;
  /** Tokens of the window to keep free; excludes `threshold`. */
  readonly reserveTokens?: number;
  /** The share of the window that may be used; excludes `reserveTokens`. */
  readonly threshold?: number;
  readonly keep?: Keep;
  /**
   * How often a summarizer call is repeated after a transient failure; `true` (default): as often as `limits.retries` says,
   * `false`: never.
   */
  readonly retryOnTransient?: boolean | number;
  /** False: no recovery. */
  readonly smartRecovery?: SmartRecovery | false;
  /** False: prune only on request. */
  readonly prune?: PrunePolicy | false;
  readonly summary?: SummaryLimits;
  /** Counts the tokens of a text. Default: characters divided by four. */
  readonly countTokens?: (text: string) => number;
}

/** The fields of a configuration that control compaction. */
export interface CompactionConfig {
  /** When and how sessions are compacted: a preset (default `reserve`) or a policy. */
  readonly compaction?: CompactionPreset | CompactionPolicy;
  /**
   * The context windows of models. For a model without one, a session is compacted when the model refuses the
   * prompt.
   */
  readonly windows?: Windows;
}

/** The level that used tokens are compared with. `reached`: the level itself already triggers. */
interface Trigger {
  readonly from: (model: ModelWindow) => number;
  readonly reached: boolean;
}

/** A policy with every default filled in. */
export interface ResolvedPolicy {
  readonly preset: CompactionPreset;
  readonly enabled: boolean;
  readonly trigger: Trigger;
  readonly keep: Keep;
  readonly retryOnTransient: boolean | number;
  readonly smartRecovery: Required<SmartRecovery>;
  /** The share of the window at which a run prunes; undefined: only on request. */
  readonly pruneFrom: number | undefined;
  readonly prune: Required<Omit<PrunePolicy, 'threshold'>>;
  readonly summary: {
    readonly timeoutMs: number;
    readonly temperature: number;
    readonly share: number;
    /** Undefined: `share` alone bounds a summary, where the window is known. */
    readonly maxOutputTokens: number | undefined;
  };
  readonly countTokens: ((text: string) => number) | undefined;
}

/** The most tokens that `reserve` keeps free for an answer. */
const answerMax = 20_000;

/** The tokens that `reserve-16k` keeps free, whatever the model. */
const fixedReserve = 16_384;

/** The default bound of a summary, in tokens. */
export const summaryMax = 4_096;

const presets: Readonly<Record<CompactionPreset, { readonly trigger: Trigger; readonly keep: Keep }>> = {
  // used ≥ window − reserve. A reserve takes at most half of the window.
  reserve: {
    trigger: {
      from: ({ window, maxOutput = answerMax }) => window - Math.min(answerMax, maxOutput, window / 2),
      reached: true,
    },
    keep: { turns: 2, share: 0.25 },
  },
  // used > window − reserve
  'reserve-16k': {
    trigger: { from: ({ window }) => window - Math.min(fixedReserve, window / 2), reached: false },
    keep: { tokens: 20_000 },
  },
  // used > 0.85 × window
  'at-85': {
    trigger: { from: ({ window }) => 0.85 * window, reached: false },
    keep: { turns: 2, share: 0.25 },
  },
  // used > 0.9 × (window − longest answer)
  'at-90': { trigger: { from: (model) => 0.9 * available(model), reached: false }, keep: { ratio: 0.25 } },
};

/** Tools whose outputs hold plans and task states, which no other entry repeats. */
const protectedTools = ['todo', 'todo_read', 'todo_write', 'todoread', 'todowrite', 'task', 'task_state'];

/** Fills in the defaults of a policy's preset. Pure. */
export function resolvePolicy(given: CompactionPreset | CompactionPolicy = 'reserve'): ResolvedPolicy {
  const policy = typeof given === 'string' ? { preset: given } : given;
  const { preset = 'reserve', enabled = true, keep = presets[preset].keep, retryOnTransient = true } = policy;
  const { smartRecovery = {}, prune = {}, summary = {} } = policy;
  const recovery: SmartRecovery =
    smartRecovery === false
      ? { pruneToolOutputs: false, chunkedSummarize: false, dropMiddle: false }
      : smartRecovery;
  const pruning = prune === false ? {} : prune;
  // Only `reserve` prunes by default; with another preset the policy requests it.
  const isPruning = prune !== false && (preset === 'reserve' || policy.prune !== undefined);
  return {
    preset,
    enabled,
    trigger: triggerOf(policy, preset),
    keep,
    retryOnTransient,
    smartRecovery: { pruneToolOutputs: true, chunkedSummarize: true, dropMiddle: true, ...recovery },
    pruneFrom: isPruning ? (pruning.threshold ?? 0.6) : undefined,
    prune: { protect: protectedTools, keepFiles: 5, minTokens: 200, ...pruning },
    summary: {
      ...{ share: 0.25, timeoutMs: 60_000, temperature: 0.2 },
      ...{ maxOutputTokens: summary.share === undefined ? summaryMax : undefined, ...summary },
    },
    countTokens: policy.countTokens,
  };
}

/** The comparison of the preset, at the level that the policy gives, if any. */
function triggerOf({ reserveTokens, threshold }: CompactionPolicy, preset: CompactionPreset): Trigger {
  const { trigger } = presets[preset];
  if (reserveTokens !== undefined)
    return { ...trigger, from: ({ window }) => window - Math.min(reserveTokens, window / 2) };
  if (threshold === undefined) return trigger;
  return {
    ...trigger,
    from: (model) => threshold * (preset === 'at-90' ? available(model) : model.window),
  };
}

function available({ window, maxOutput = 0 }: ModelWindow): number {
  return window - Math.min(maxOutput, window / 2);
}

/** The tokens of a model's window that a session may use before it is compacted. */
export function usableOf({ trigger }: ResolvedPolicy, model: ModelWindow): number {
  return Math.floor(trigger.from(model));
}

/** Whether this many used tokens trigger a compaction. */
export function isTooFull({ trigger }: ResolvedPolicy, model: ModelWindow, used: number): boolean {
  const level = trigger.from(model);
  return trigger.reached ? used >= level : used > level;
}

/** Whether this many used tokens trigger pruning. */
export function isToBePruned({ pruneFrom }: ResolvedPolicy, { window }: ModelWindow, used: number): boolean {
  return pruneFrom !== undefined && used >= pruneFrom * window;
}
