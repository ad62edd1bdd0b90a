import type { Appended, Draft, Forked, ForkRequest, TapeStore } from '@tapedeck/tape';
import type { LanguageModel } from '../model/model.ts';
import type { RetryLimits } from '../model/retry.ts';
import type { ModelWindow } from '../model/window.ts';
import type { CompactionTrigger, SessionEvent } from '../stream/events.ts';
import type { CostOf, Usage } from '../usage/usage.ts';
import type { Keep, ResolvedPolicy } from './policy.ts';

/** The resolved configuration of compaction for the model that runs a session. */
export interface CompactionTerms {
  readonly policy: ResolvedPolicy;
  /** Undefined if the configuration gives no window for the model. */
  readonly window: ModelWindow | undefined;
  /** The window of the model that writes summaries. */
  readonly summarizerWindow: ModelWindow | undefined;
}

/** Dependencies of recording a summarizer. */
export interface RecordContext {
  readonly session: string;
  readonly store: TapeStore;
  /** The run that compacts; absent when the user requests the compaction. */
  readonly run?: string;
  readonly cost: CostOf | undefined;
  readonly signal: AbortSignal;
  /** Makes a child of the session. */
  readonly fork: (request: ForkRequest) => Promise<Forked>;
}

/** Dependencies of compacting a session. */
export interface CompactContext extends RecordContext {
  readonly model: LanguageModel;
  readonly summarizer: LanguageModel | undefined;
  readonly compaction: CompactionTerms;
  readonly limits: RetryLimits;
  readonly now: () => number;
  /** Runs a model call when its provider has a free slot. */
  readonly calling: <T>(call: () => Promise<T>) => Promise<T>;
  /** Appends entries to the session. */
  readonly append: (drafts: readonly Draft[]) => Promise<Appended>;
  readonly emitEvent: (event: SessionEvent) => void;
  /** The warnings of the AI SDK that were published. */
  readonly warned: Set<string>;
  /** Adds the usage of a summary to the usage of the run. */
  readonly spend: (usage: Usage) => void;
}

/** One request to compact. */
export interface CompactionOrder {
  readonly trigger: CompactionTrigger;
  readonly focus?: string | undefined;
  /** Replaces the `keep` of the policy. */
  readonly keep?: Keep;
  /** The most tokens that the view may take afterwards. */
  readonly fit?: number;
}
