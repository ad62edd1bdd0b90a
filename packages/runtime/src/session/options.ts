import type { Meta, Part, Seq } from '@tapedeck/tape';
import type { RewindMode, RewoundMessage } from '../history/rewind.ts';
import type { ModelSpec } from '../model/spec.ts';
import type { QueueMode, Source } from '../run/queue.ts';
import type { Callbacks, Run } from '../run/run.ts';
import type { DeckTools } from '../tools/traits.ts';

/** What a session is told: a text, or the parts of a user message. */
export type Input = string | readonly Part[];

export interface RunOptions {
  /** Named by a text, it is what the session goes on with until another is named (G54). */
  readonly model?: ModelSpec;
  /** Tools offered in this run, instead of the deck's. */
  readonly tools?: DeckTools;
  /** False: no tools are offered (X3; unlike there the default is true). */
  readonly useTools?: boolean;
  readonly instructions?: string;
  /** Model calls at most before the run is halted, instead of the deck's limit (K27). */
  readonly maxSteps?: number;
  /** Facts to keep with the message (X3). */
  readonly meta?: Meta;
  /** Rejects with SESSION_ENDED when the session's task has come to its end before, here or elsewhere. */
  readonly unlessEnded?: boolean;
  readonly signal?: AbortSignal;
}

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

export interface SubscribeOptions {
  readonly from?: Seq;
  readonly signal?: AbortSignal;
}

export interface RespondOptions extends Pick<RunOptions, 'model'> {
  /** False: the answer is only left here, for whoever runs the session. */
  readonly takeUp?: boolean;
}

export interface RewindOptions {
  /** What becomes of the message (default `edit`). */
  readonly mode?: RewindMode;
  /** The name of the model that answers it when it is sent again; the session goes on with that one. */
  readonly model?: string;
  /** False: a message that is sent again is only appended, for the next run. */
  readonly takeUp?: boolean;
}

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
export interface Mark {
  readonly session: string;
  readonly seq: number;
  readonly name: string;
}
