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
import type { CallSettings } from '../model/call-settings.ts';
import type { LanguageModel, ModelFailure, ModelMessage } from '../model/model.ts';
import type { ModelFrom } from '../model/name.ts';
import type { OutputSpec } from '../model/output.ts';
import type { OpenCall, WaitingCall } from '../stream/call.ts';
import type { Chunk } from '../stream/chunks.ts';
import type { Finish, Phase, SessionEvent } from '../stream/events.ts';
import type { Reached } from '../terms/budget.ts';
import type { Permits } from '../terms/permits.ts';
import type { DeckTools } from '../tools/traits.ts';
import type { Usage } from '../usage/usage.ts';
import type { SentTools } from './sent-tools.ts';

/** What the turn loop needs of a run. */
export interface LoopContext {
  readonly run: string;
  readonly session: string;
  /** The session's parent. */
  readonly parent: string | undefined;
  readonly store: TapeStore;
  readonly model: LanguageModel;
  /** Where the name of the model comes from; undefined for a model without a name. */
  readonly modelFrom: ModelFrom | undefined;
  /** Settings of the model calls. */
  readonly callSettings: CallSettings;
  readonly summarizer: LanguageModel | undefined;
  /** The view policy of the model calls. */
  readonly shows: ViewPolicy;
  readonly compaction: CompactionTerms;
  readonly tools: DeckTools;
  /** The tool definitions sent to the provider. */
  readonly definitions: ToolSet;
  /** The same as the tape records them; undefined without tools. */
  readonly sentTools: SentTools | undefined;
  /** Assembles the instructions of a model call with these entries. */
  readonly instruct: (entries: readonly Entry[]) => Promise<string | undefined>;
  /** The `context` that tools receive in their options. */
  readonly toolContext: object;
  /** Decides on calls by rules. */
  readonly permits: Permits;
  /** Whether the run is done again when the database stops it. */
  readonly isDoneAgain: boolean;
  /** Whether a tool is offered but not allowed in this session. */
  readonly forbidden: (name: string) => boolean;
  /** The last inherited position; undefined when the session inherits nothing. */
  readonly base: Seq | undefined;
  /** The budget limit that forbids a further model call; undefined when none does. */
  readonly reached: () => Promise<Reached | undefined>;
  /** JSON Schema of the result that the last step gives. */
  readonly output: JsonObject | undefined;
  /** Makes the value of that result. */
  readonly outputSpec: OutputSpec<unknown> | undefined;
  readonly limits: Required<Limits>;
  readonly onApproval: DeckConfig['onApproval'];
  /** Whether a call that waits for its children can go on: all of them have ended, or one of them can go on. */
  readonly canContinue: (call: OpenCall) => Promise<boolean>;
  /** The calls of sessions below that wait for answers. */
  readonly waitsBelow: () => Promise<readonly WaitingCall[]>;
  readonly cost: DeckConfig['cost'];
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** Saves a chunk and publishes it. */
  readonly emit: (chunk: Chunk) => void;
  readonly emitEvent: (event: SessionEvent) => void;
  /** The warnings of the AI SDK that were published. */
  readonly warned: Set<string>;
  /** Sets the phase of the run. */
  readonly enter: (phase: Phase) => void;
  readonly retrying: (attempt: number, message: string) => void;
  /** Queues a model call within the limits of its provider. */
  readonly calling: <T>(call: () => Promise<T>) => Promise<T>;
  /** Adds the usage of a summary, which is not a step of the run. */
  readonly spend: (usage: Usage) => void;
  /** Forks a child of the session. */
  readonly fork: (request: ForkRequest) => Promise<Forked>;
  /** Commits entries under the run's lease. */
  readonly append: (drafts: readonly Draft[]) => Promise<Appended>;
  /** Commits the session's structured result. */
  readonly giveResult: (value: Json) => Promise<Appended>;
  /** Commits the entries of a live answer and removes its chunks. */
  readonly settle: (drafts: readonly Draft[]) => Promise<Appended>;
  /**
   * Handles the inbox at a settled point and appends the messages that steer this run. True when it appended
   * any. `last`: the run would end here.
   */
  readonly takeMessages: (at: 'step' | 'last') => Promise<boolean>;
}

/** The result of the turn loop. */
export interface LoopResult {
  readonly finish: Finish;
  readonly text: string;
  readonly steps: number;
  readonly usage: Usage;
  readonly error?: SessionError;
  /** The structured result. */
  readonly output?: unknown;
}

/** The messages of a model call, and the entries and view behind them. */
export interface Prompt {
  readonly entries: readonly Entry[];
  readonly view: View;
  readonly messages: readonly ModelMessage[];
}

/** A failed model call, with the part of the answer that arrived. */
export interface Failed {
  readonly failure: ModelFailure;
  readonly partial: readonly Draft[];
  /** Metadata of the model call, if it was made. */
  readonly callMeta?: JsonObject | undefined;
}
