import type {
  Appended,
  Draft,
  Entry,
  Forked,
  ForkRequest,
  Json,
  JsonObject,
  Seq,
  TapeStore,
  View,
  ViewPolicy,
} from '@tapedeck/tape';
import type { ToolSet } from 'ai';
import type { CompactionTerms } from '../compaction/context.ts';
import type { DeckConfig, Limits } from '../config/config.ts';
import type { SessionError } from '../errors.ts';
import type { LanguageModel, ModelFailure, ModelMessage } from '../model/model.ts';
import type { Chunk } from '../stream/chunks.ts';
import type { Finish, Phase, SessionEvent } from '../stream/events.ts';
import type { Reached } from '../terms/budget.ts';
import type { DeckTools } from '../tools/traits.ts';
import type { Usage } from '../usage/usage.ts';

/** What the loop works with. */
export interface LoopContext {
  readonly run: string;
  readonly session: string;
  /** The session that it was forked from. */
  readonly parent: string | undefined;
  readonly store: TapeStore;
  readonly model: LanguageModel;
  readonly summarizer: LanguageModel | undefined;
  /** Which part of the session the model is shown. */
  readonly shows: ViewPolicy;
  readonly compaction: CompactionTerms;
  readonly tools: DeckTools;
  /** The tools as they are sent. */
  readonly definitions: ToolSet;
  /** SHA-256 of the tools as they are sent. */
  readonly toolsDigest: string | undefined;
  /** What the model is told before the messages that these entries show. */
  readonly instruct: (entries: readonly Entry[]) => Promise<string | undefined>;
  /** The `context` of the options that tools are called with. */
  readonly toolContext: object;
  /** Whether a tool is offered, and may not be used here. */
  readonly forbidden: (name: string) => boolean;
  /** The last inherited position, of a session that inherits something. */
  readonly base: Seq | undefined;
  /** Whether a budget allows a further model call. */
  readonly reached: () => Promise<Reached | undefined>;
  /** JSON Schema of the result that the last step is asked for. */
  readonly output: JsonObject | undefined;
  readonly limits: Required<Limits>;
  readonly onApproval: DeckConfig['onApproval'];
  readonly cost: DeckConfig['cost'];
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** Shows a chunk to everybody who watches. */
  readonly emit: (chunk: Chunk) => void;
  readonly tell: (event: SessionEvent) => void;
  /** Says what the run is at. */
  readonly enter: (phase: Phase) => void;
  readonly retrying: (attempt: number, message: string) => void;
  /** Makes a model call when its provider has room for one. */
  readonly calling: <T>(call: () => Promise<T>) => Promise<T>;
  /** Counts what a summary took, which is no step of the run. */
  readonly spend: (usage: Usage) => void;
  /** Makes a child of the session. */
  readonly fork: (request: ForkRequest) => Promise<Forked>;
  /** Commits entries under the run's lease. */
  readonly append: (drafts: readonly Draft[]) => Promise<Appended>;
  /** Commits what the session came to, in the form that was asked for. */
  readonly giveResult: (value: Json) => Promise<Appended>;
  /** Commits what a live answer came to, in place of its chunks. */
  readonly settle: (drafts: readonly Draft[]) => Promise<Appended>;
  /**
   * Does what arrived in the inbox, at a point where no call is open, and takes in messages for this run. True when
   * there were any. `last`: the run would end here.
   */
  readonly takeMessages: (at: 'step' | 'last') => Promise<boolean>;
}

/** What the loop came to. */
export interface LoopResult {
  readonly finish: Finish;
  readonly text: string;
  readonly steps: number;
  readonly usage: Usage;
  readonly error?: SessionError;
}

/** What the model is shown. */
export interface Prompt {
  readonly entries: readonly Entry[];
  readonly view: View;
  readonly messages: readonly ModelMessage[];
}

/** A call that came to nothing, or to a part of an answer. */
export interface Failed {
  readonly failure: ModelFailure;
  readonly partial: readonly Draft[];
  /** What the model was asked with, if it was. */
  readonly asked?: JsonObject | undefined;
}
