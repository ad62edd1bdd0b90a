import type { ModelWindow, Windows } from '../model/window.ts';

/**
 * Policies by name: when a session is compacted, and how much of its end stays. `reserve` leaves room for the longest
 * answer of the model, `reserve-16k` leaves 16,384 tokens; `at-85` allows 85 % of the window, `at-90` allows 90 % of
 * what the longest answer leaves.
 */
export const compactionPresets = ['reserve', 'reserve-16k', 'at-85', 'at-90'] as const;

export type CompactionPreset = (typeof compactionPresets)[number];

/** How much of the end of a session stays as it is (K18). */
export type Keep =
  /** So many turns, of at most `share` of what can be used; else one, or with `over: 'split'` a part of that (G42, G43). */
  | { readonly turns: number; readonly share?: number; readonly over?: 'fewer' | 'split' }
  | { readonly tokens: number }
  /** A share of what can be used. */
  | { readonly ratio: number };

/** When outputs of calls are left out of the view, and which never (G50-G52). */
export interface PrunePolicy {
  /** The share of the window from which on it is done by itself (default 0.6). */
  readonly threshold?: number;
  /** Names of tools whose outputs stay. */
  readonly protect?: readonly string[];
  /** Of how many files the newest output stays (default 5). */
  readonly keepFiles?: number;
  /** How large an output must be, in tokens (default 200). */
  readonly minTokens?: number;
}

/** Bounds of the call that writes a summary (G44). */
export interface SummaryLimits {
  readonly maxOutputTokens?: number;
  readonly timeoutMs?: number;
  readonly temperature?: number;
}

/** What to do about a summary that the summarizer refuses because what it is to be made of is too large (G47, G48). */
export interface SmartRecovery {
  readonly pruneToolOutputs?: boolean;
  readonly chunkedSummarize?: boolean;
  readonly dropMiddle?: boolean;
}

/** When a session is summarised, and how. What is left out is as the preset has it. */
export interface CompactionPolicy {
  /** Default `reserve`. */
  readonly preset?: CompactionPreset;
  /** False: only by hand, and when a model refuses what the session holds. */
  readonly enabled?: boolean;
  /** Tokens of the window that are left free; not with `threshold`. */
  readonly reserveTokens?: number;
  /** The share of the window that may be used; not with `reserveTokens`. */
  readonly threshold?: number;
  readonly keep?: Keep;
  /** Whether a summarizer that fails for a passing reason is asked again (default true). */
  readonly retryOnTransient?: boolean;
  /** False: none of it. */
  readonly smartRecovery?: SmartRecovery | false;
  /** False: only by hand. */
  readonly prune?: PrunePolicy | false;
  readonly summary?: SummaryLimits;
  /** Counts the tokens of a text; without it they are characters divided by four (J18). */
  readonly countTokens?: (text: string) => number;
}

/** What a configuration says of summaries. */
export interface CompactionConfig {
  /** When sessions are summarised, and how: a preset (default `reserve`) or a policy. */
  readonly compaction?: CompactionPreset | CompactionPolicy;
  /** How many tokens models take at once. Where neither this nor the table of models says, the model's own refusal does. */
  readonly windows?: Windows;
}

/** What is compared with what is used: the level, and whether reaching it is enough. */
interface Trigger {
  readonly from: (model: ModelWindow) => number;
  readonly reached: boolean;
}

/** A policy with nothing left out. */
export interface ResolvedPolicy {
  readonly preset: CompactionPreset;
  readonly enabled: boolean;
  readonly trigger: Trigger;
  readonly keep: Keep;
  readonly retryOnTransient: boolean;
  readonly smartRecovery: Required<SmartRecovery>;
  /** Undefined: not by itself. */
  readonly pruneFrom: number | undefined;
  readonly prune: Required<Omit<PrunePolicy, 'threshold'>>;
  readonly summary: {
    readonly timeoutMs: number;
    readonly temperature: number;
    readonly maxOutputTokens: number;
  };
  readonly countTokens: ((text: string) => number) | undefined;
}

/** The most tokens that `reserve` keeps free for an answer. */
const answerMax = 20_000;

/** The tokens that `reserve-16k` keeps free, whatever the model. */
const fixedReserve = 16_384;

/** The longest summary that is asked for, in tokens. */
const summaryMax = 4_096;

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

/** Tools whose outputs say what is to be done, which nothing else does (G51). */
const protectedTools = ['todo', 'todo_read', 'todo_write', 'todoread', 'todowrite', 'task', 'task_state'];

/** A policy with the defaults of its preset (K17). Pure. */
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
    summary: { maxOutputTokens: summaryMax, timeoutMs: 60_000, temperature: 0.2, ...summary },
    countTokens: policy.countTokens,
  };
}

/** The preset's own comparison, with another level where one is given. */
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

/** How much of a model's window can be used before a session is summarised, in tokens. */
export function usableOf({ trigger }: ResolvedPolicy, model: ModelWindow): number {
  return Math.floor(trigger.from(model));
}

/** Whether so many used tokens call for a summary (D311, D420). */
export function isTooFull({ trigger }: ResolvedPolicy, model: ModelWindow, used: number): boolean {
  const level = trigger.from(model);
  return trigger.reached ? used >= level : used > level;
}

/** Whether so many used tokens call for outputs to be left out. */
export function isToBePruned({ pruneFrom }: ResolvedPolicy, { window }: ModelWindow, used: number): boolean {
  return pruneFrom !== undefined && used >= pruneFrom * window;
}
