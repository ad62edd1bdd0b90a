import type { Meta, Point, Seq, ViewOptions } from '@tapedeck/tape';
import type { Fields } from '../fields.ts';
import type { RewindMode, RewoundMessage } from '../history/rewind.ts';
import type { CallSettings } from '../model/call-settings.ts';
import type { RunOptions } from '../run/options.ts';
import type { MessageSource, QueueMode } from '../run/queue.ts';
import type { Callbacks, Run } from '../run/run.ts';
import type { Permit } from '../terms/permits.ts';

/** Options of a run that a message, an answer or a chat starts. */
export type StartOptions = Pick<
  RunOptions,
  'model' | 'settings' | 'tools' | 'useTools' | 'instructions' | 'maxSteps' | 'signal'
>;

/** The fields of `StartOptions`. */
export const startFields: Fields<StartOptions> = {
  model: true,
  settings: 'object',
  tools: true,
  useTools: 'flag',
  instructions: 'text',
  maxSteps: 'limit',
  signal: 'signal',
};

/** Options of `Session.send`. */
export interface SendOptions {
  /** Queue mode: what the message does to a current run. Default: by its source and the session's kind. */
  readonly mode?: QueueMode;
  readonly source?: MessageSource;
  /** Idempotency key: two messages with the same key are one message. */
  readonly key?: string;
  readonly model?: string;
  /** Settings of the model calls that answer it, as for a run. */
  readonly settings?: CallSettings;
  readonly meta?: Meta;
  /** False: only post the message; the process that runs the session takes it up. */
  readonly start?: boolean;
  /** Options of the run that answers the message, when this process runs it: now, or after the current run. */
  readonly run?: StartOptions;
  /** Called with the events of the run, if the message starts one immediately. */
  readonly on?: Callbacks;
}

/** The fields of `SendOptions`. */
export const sendFields: Fields<SendOptions> = {
  mode: true,
  source: 'text',
  key: 'text',
  model: true,
  settings: 'object',
  meta: 'object',
  start: 'flag',
  run: 'object',
  on: 'object',
};

/** The fields of the options of `view`. */
export const viewFields: Fields<ViewOptions & { readonly at?: Point }> = {
  policy: true,
  target: 'object',
  at: true,
  countTokens: 'function',
};

/** Options of `Session.subscribe`. `from` is the first position to read. */
export interface SubscribeOptions {
  readonly from?: Seq;
  readonly signal?: AbortSignal;
}

/** The fields of `SubscribeOptions`. */
export const subscribeFields: Fields<SubscribeOptions> = {
  from: 'count',
  signal: 'signal',
};

/**
 * Options of `Session.respond`: those of the runs that go on. With a call of a session below, of its run and of those above
 * it, up to this session; `instructions` are for this session alone. Nothing of the run that made the call is kept, except a
 * model and settings that were given by name: in their place are those of the deck.
 */
export interface RespondOptions extends StartOptions {
  /** False: only post the answer; the process that runs the session takes it up. */
  readonly start?: boolean;
}

/** The fields of `RespondOptions`. */
export const respondFields: Fields<RespondOptions> = { ...startFields, start: 'flag' };

/** Options of `Session.rewind`. */
export interface RewindOptions {
  /** `edit` (default) returns the message; `resend` appends it again and runs it. */
  readonly mode?: RewindMode;
  /** Name of the model that answers a resent message. The session keeps that model. */
  readonly model?: string;
  /** Settings of its calls. The session keeps them. */
  readonly settings?: CallSettings;
  /** False: only append the resent message, for the next run. */
  readonly start?: boolean;
  /** Options of the run that answers a resent message. */
  readonly run?: StartOptions;
}

/** The fields of `RewindOptions`. */
export const rewindFields: Fields<RewindOptions> = {
  mode: true,
  model: true,
  settings: 'object',
  start: 'flag',
  run: 'object',
};

/** The receipt of a rewind, and the run that answers a resent message. */
export interface SessionRewound extends RewoundMessage {
  readonly run?: Run;
}

/** The state of a durable message. */
export interface Sent {
  readonly id: string;
  /** `queued`: the current or next run of the session takes the message up. */
  readonly state: 'started' | 'queued' | 'steered' | 'interrupted';
  readonly run?: Run;
  /** The whole text of the started run, once it ends. */
  readonly text?: Promise<string>;
}

/** The rules that decide on calls of a session. */
export interface SessionRules {
  /** For each session, the root first, its rules in order: the last that is about a claim decides. */
  readonly lineage: readonly {
    readonly session: string;
    readonly rules: readonly {
      readonly rule: string;
      readonly scope: Exclude<Permit['scope'], 'tool' | undefined>;
    }[];
  }[];
  /** The answers of persons that count for good. */
  readonly grants: readonly string[];
  /** The MCP servers of the deck, and whether the session may call a tool of each; absent without servers. */
  readonly servers?: readonly { readonly server: string; readonly callable: boolean }[];
}

/** The position of a new anchor. */
export interface AnchorReceipt {
  readonly session: string;
  readonly seq: number;
  readonly name: string;
}
