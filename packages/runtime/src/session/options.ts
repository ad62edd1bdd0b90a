import type { Meta, Seq } from '@tapedeck/tape';
import type { Fields } from '../fields.ts';
import type { RewindMode, RewoundMessage } from '../history/rewind.ts';
import type { RunOptions } from '../run/options.ts';
import type { QueueMode, Source } from '../run/queue.ts';
import type { Callbacks, Run } from '../run/run.ts';

export interface SendOptions {
  /** What the message does to a run under way; by default what its source and the session's kind say (K13). */
  readonly mode?: QueueMode;
  readonly source?: Source;
  /** The same key sent twice is one message. */
  readonly key?: string;
  readonly model?: string;
  readonly meta?: Meta;
  /** False: it is only left here, for whoever runs the session. */
  readonly takeUp?: boolean;
  /** Called with the events of the run, when the message starts one at once (X3, X5). */
  readonly on?: Callbacks;
}

/** The fields of `SendOptions`. */
export const sendFields: Fields<SendOptions> = {
  mode: true,
  source: true,
  key: true,
  model: true,
  meta: true,
  takeUp: true,
  on: true,
};

export interface SubscribeOptions {
  readonly from?: Seq;
  readonly signal?: AbortSignal;
}

/** The fields of `SubscribeOptions`. */
export const subscribeFields: Fields<SubscribeOptions> = {
  from: true,
  signal: true,
};

export interface RespondOptions extends Pick<RunOptions, 'model'> {
  /** False: the answer is only left here, for whoever runs the session. */
  readonly takeUp?: boolean;
}

/** The fields of `RespondOptions`. */
export const respondFields: Fields<RespondOptions> = {
  model: true,
  takeUp: true,
};

export interface RewindOptions {
  /** What becomes of the message (default `edit`). */
  readonly mode?: RewindMode;
  /** The name of the model that answers it when it is sent again; the session goes on with that one. */
  readonly model?: string;
  /** False: a message that is sent again is only appended, for the next run. */
  readonly takeUp?: boolean;
}

/** The fields of `RewindOptions`. */
export const rewindFields: Fields<RewindOptions> = {
  mode: true,
  model: true,
  takeUp: true,
};

/** The receipt of a rewind, and the run that answers a message that was sent again. */
export interface SessionRewound extends RewoundMessage {
  readonly run?: Run;
}

/** What became of a message. It is durable when this is told. */
export interface Sent {
  readonly id: string;
  /** `queued`: whoever runs the session takes it up; when nobody does, the next run. */
  readonly state: 'started' | 'queued' | 'steered' | 'interrupted';
  readonly run?: Run;
  /** All text of the run that it started, once that is over. */
  readonly text?: Promise<string>;
}

/** The position of an anchor that was written. */
export interface AnchorReceipt {
  readonly session: string;
  readonly seq: number;
  readonly name: string;
}
