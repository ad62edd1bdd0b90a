import type { RunOptions } from './options.ts';

/** The options of an answer, for the sessions above that go on when the session of the call has ended. */
export interface Above {
  readonly options: RunOptions;
  /** The ULID of the session at which the answer was given: those above it do not have these options. */
  readonly until: string;
}

/** What an answer gives to the run of a session: instructions are those of the one at which it was given. */
export function optionsFor(id: string, { options, until }: Above): RunOptions {
  const { instructions: _, ...others } = options;
  return id === until ? options : others;
}
