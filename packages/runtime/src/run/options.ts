import type { Meta, Part } from '@tapedeck/tape';
import type { Fields } from '../fields.ts';
import type { CallSettings } from '../model/call-settings.ts';
import type { ModelSpec } from '../model/spec.ts';
import type { DeckTools } from '../tools/traits.ts';

/** Input of a session: a text, or the parts of a user message. */
export type Input = string | readonly Part[];

/** Options of `Session.run`. */
export interface RunOptions {
  /** The model of this run. One given by name stays the session's model until another is named. */
  readonly model?: ModelSpec;
  /** Settings of its model calls. They stay those of the session, one by one, until others are named. */
  readonly settings?: CallSettings;
  /** Tools of this run, instead of the deck's. */
  readonly tools?: DeckTools;
  /** False: offer no tools (default true). */
  readonly useTools?: boolean;
  readonly instructions?: string;
  /** The number of model calls after which the run is halted, instead of the deck's limit. */
  readonly maxSteps?: number;
  /** Metadata to store with the message. */
  readonly meta?: Meta;
  /** True: reject with SESSION_ENDED when the session's task has already ended. */
  readonly unlessEnded?: boolean;
  readonly signal?: AbortSignal;
}

/** The fields of `RunOptions`. */
export const runFields: Fields<RunOptions> = {
  model: true,
  settings: 'object',
  tools: true,
  useTools: 'flag',
  instructions: 'text',
  maxSteps: 'limit',
  meta: 'object',
  unlessEnded: 'flag',
  signal: 'signal',
};
