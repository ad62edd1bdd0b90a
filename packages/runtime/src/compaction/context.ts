import type { Appended, Draft, Forked, ForkRequest, TapeStore } from '@tapedeck/tape';
import type { LanguageModel } from '../model/model.ts';
import type { ModelWindow } from '../model/window.ts';
import type { CompactionTrigger, SessionEvent } from '../stream/events.ts';
import type { CostOf, Usage } from '../usage/usage.ts';
import type { Keep, ResolvedPolicy } from './policy.ts';

/** What a deck says of summaries, for the model that a session is run with. */
export interface CompactionTerms {
  readonly policy: ResolvedPolicy;
  /** Undefined where neither the configuration nor the table of models gives one. */
  readonly window: ModelWindow | undefined;
  /** The window of the model that summarises. */
  readonly summarizerWindow: ModelWindow | undefined;
}

/** What recording a summarizer needs. */
export interface RecordContext {
  readonly session: string;
  readonly store: TapeStore;
  /** The run that compacts; left out where a person does. */
  readonly run?: string;
  readonly cost: CostOf | undefined;
  readonly signal: AbortSignal;
  /** Makes a child of the session. */
  readonly fork: (request: ForkRequest) => Promise<Forked>;
}

/** What compacting a session needs. */
export interface CompactContext extends RecordContext {
  readonly model: LanguageModel;
  readonly summarizer: LanguageModel | undefined;
  readonly compaction: CompactionTerms;
  readonly limits: { readonly retries: number; readonly retryDelayMs: number };
  readonly now: () => number;
  /** Makes a model call when its provider has room for one. */
  readonly calling: <T>(call: () => Promise<T>) => Promise<T>;
  /** Commits entries of the session. */
  readonly append: (drafts: readonly Draft[]) => Promise<Appended>;
  readonly tell: (event: SessionEvent) => void;
  /** Adds what a summary took to the usage of the run. */
  readonly spend: (usage: Usage) => void;
}

/** What is asked for. */
export interface CompactionOrder {
  readonly trigger: CompactionTrigger;
  readonly focus?: string | undefined;
  /** In place of the policy's. */
  readonly keep?: Keep;
  /** What the view may take afterwards, in tokens. */
  readonly fit?: number;
}
