import type { SqliteTapeStore } from '@tapedeck/tape';
import type { ArgumentsCamelCase, Argv } from 'yargs';
import { findHome, type Home, needHome, openForReading, openForWriting } from './home.ts';
import type { Io } from './io.ts';
import { safe } from './output/safe.ts';

/** Options of every verb. */
export interface CommonOptions {
  readonly home?: string | undefined;
  readonly json?: boolean | undefined;
  readonly jsonl?: boolean | undefined;
  readonly quiet?: boolean | undefined;
  readonly color?: boolean | undefined;
  readonly durability?: 'full' | 'fast' | undefined;
}

/** What a verb works with. */
export interface Context {
  readonly io: Io;
  readonly options: CommonOptions;
  readonly home: Home;
  /** Whether to colour what a person reads. */
  readonly color: boolean;
  /** Opens the home for reading, for as long as `act` takes. */
  reading<T>(act: (store: SqliteTapeStore) => Promise<T>): Promise<T>;
  /** Opens the home for writing; one that is not there is made. */
  writing<T>(act: (store: SqliteTapeStore) => Promise<T>): Promise<T>;
  /** The same, for acts on a session that must be there: one that is not makes no home. */
  changing<T>(act: (store: SqliteTapeStore) => Promise<T>): Promise<T>;
  /** A change that is done: JSON for programs, `quiet` (the id alone) for scripts, `human` for people. */
  answer(result: { readonly json: unknown; readonly quiet?: string; readonly human: string }): Promise<void>;
  /** One line of status on stderr, unless `--quiet`. */
  status(text: string): void;
}

export type Group = 'Start' | 'Look' | 'Change direction' | 'Trust' | 'Other';

/** What every verb tells of itself. */
interface Described {
  /** The grammar, as yargs reads it: `fork <parent>`. */
  readonly command: string;
  readonly aliases?: readonly string[];
  readonly group: Group;
  /** Imperative, no full stop, under 72 columns. */
  readonly summary: string;
  readonly detail?: string;
  /** Options that may be given more than once. */
  readonly lists?: readonly string[];
  /** Commands that work as they stand, each with what it does. */
  readonly examples: readonly (readonly [command: string, does: string])[];
}

/** One verb of the command line. */
export interface Verb extends Described {
  /** Declares the verb's own options. */
  options(yargs: Argv<CommonOptions>): unknown;
  /** Does it, with what those options parsed to, and returns the exit code. */
  run(args: unknown, context: Context): Promise<number>;
}

/** A verb whose `run` gets the arguments that its `options` declare. */
export function defineVerb<Options>(
  verb: Described & {
    options(yargs: Argv<CommonOptions>): Argv<Options>;
    run(args: ArgumentsCamelCase<Options>, context: Context): Promise<number>;
  },
): Verb {
  return { ...verb, run: (args, context) => verb.run(args as ArgumentsCamelCase<Options>, context) };
}

export function makeContext(io: Io, options: CommonOptions): Context {
  const home = findHome(options.home, io);
  const during = async <T>(
    store: SqliteTapeStore,
    act: (store: SqliteTapeStore) => Promise<T>,
  ): Promise<T> => {
    try {
      return await act(store);
    } finally {
      store.close();
    }
  };
  return {
    io,
    options,
    home,
    color: options.color ?? (io.isTerminal && (io.env.NO_COLOR ?? '') === ''),
    reading: async (act) => during(openForReading(home), act),
    writing: async (act) => during(openForWriting(home, io, options), act),
    changing: async (act) => during(openForWriting(needHome(home), io, options), act),
    answer: async ({ json, quiet, human }) => {
      if (options.quiet === true && quiet !== undefined) await io.out(quiet === '' ? '' : `${quiet}\n`);
      else if (options.json === true || options.jsonl === true) await io.out(`${JSON.stringify(json)}\n`);
      else await io.out(`${safe(human)}\n`);
    },
    status: (text) => {
      if (options.quiet !== true) io.err(`${safe(text)}\n`);
    },
  };
}
