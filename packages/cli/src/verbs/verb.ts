import type { ArgumentsCamelCase, Argv } from 'yargs';
import type { CommonOptions, Context } from '../context.ts';

export type Group = 'Start' | 'Look' | 'Change direction' | 'Trust' | 'Other';

/** Name, help texts and examples of a verb. */
interface Described {
  /** The grammar, as yargs reads it: `fork <parent>`. */
  readonly command: string;
  readonly aliases?: readonly string[];
  /** Earlier names, which work and are in no help text. */
  readonly synonyms?: readonly string[];
  readonly group: Group;
  /** Imperative, no full stop, under 72 columns. */
  readonly summary: string;
  readonly detail?: string;
  /** Names of the options that may repeat. */
  readonly lists?: readonly string[];
  /** Complete commands, each with its effect. */
  readonly examples: readonly (readonly [command: string, does: string])[];
}

/** One verb of the command line. */
export interface Verb extends Described {
  /** Declares the verb's own options. */
  options(yargs: Argv<CommonOptions>): unknown;
  /** Runs the verb with its parsed options, and returns the exit code. */
  run(args: unknown, context: Context): Promise<number>;
}

/** A verb whose `run` receives the arguments that its `options` declare. */
export function defineVerb<Options>(
  verb: Described & {
    options(yargs: Argv<CommonOptions>): Argv<Options>;
    run(args: ArgumentsCamelCase<Options>, context: Context): Promise<number>;
  },
): Verb {
  return { ...verb, run: (args, context) => verb.run(args as ArgumentsCamelCase<Options>, context) };
}

/** The name of a verb: the first word of its grammar. */
export function nameOf({ command }: Pick<Verb, 'command'>): string {
  return command.split(' ')[0] ?? command;
}
