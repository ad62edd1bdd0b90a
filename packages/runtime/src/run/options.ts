import type { Meta, Part } from '@tapedeck/tape';
import type { Fields } from '../fields.ts';
import type { ModelSpec } from '../model/spec.ts';
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

/** The fields of `RunOptions`. */
export const runFields: Fields<RunOptions> = {
  model: true,
  tools: true,
  useTools: true,
  instructions: true,
  maxSteps: true,
  meta: true,
  unlessEnded: true,
  signal: true,
};
