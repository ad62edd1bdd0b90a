import type { CommonOptions, Context } from '../context.ts';
import type { Arguments, ArgumentValues, Options, OptionValues } from '../options/declare.ts';

/** What a user wants of a verb, in the order of the help. */
export const groups = ['Start', 'Run', 'Look', 'Change', 'Merge', 'Trust', 'Share'] as const;

type Group = (typeof groups)[number];

/** Name, help texts, grammar and examples of a verb. */
interface Described {
  /** Its name and its arguments: `fork <parent>`, `status [name]`, `wait <names..>`. */
  readonly command: string;
  readonly aliases?: readonly string[];
  /** Earlier names, which work and are in no help text. */
  readonly synonyms?: readonly string[];
  readonly group: Group;
  /** Imperative, no full stop, under 72 columns. */
  readonly summary: string;
  readonly detail?: string;
  /** Complete commands, each with its effect. */
  readonly examples: readonly (readonly [command: string, does: string])[];
  readonly arguments?: Arguments;
  readonly options?: Options;
  /**
   * Shows its output in a pager where it is longer than the terminal, unless it follows what happens; a text is broken into
   * lines that fit the terminal, data is not.
   */
  readonly paged?: true | 'data';
  /** Options that cannot be used together. */
  readonly conflicts?: Readonly<Record<string, readonly string[]>>;
}

/** One verb of the command line. */
export interface Verb extends Described {
  /** Runs the verb with the values of its arguments and options, and returns the exit code. */
  run(args: unknown, context: Context): Promise<number>;
}

/** A verb whose `run` receives the values that its grammar and its options declare. */
export function defineVerb<const Command extends string, const Own extends Options = Record<never, never>>(
  verb: Omit<Described, 'command' | 'options'> & {
    readonly command: Command;
    readonly options?: Own;
    run(args: ArgumentValues<Command> & OptionValues<Own> & CommonOptions, context: Context): Promise<number>;
  },
): Verb {
  return verb as Verb;
}

/** The name of a verb: the first word of its grammar. */
export function nameOf({ command }: Pick<Verb, 'command'>): string {
  return command.split(' ')[0] ?? command;
}
