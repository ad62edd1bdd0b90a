import type { SqliteTapeStore } from '@tapedeck/tape';
import { safe } from './escape.ts';
import { findHome, getHome, type Home, openForReading, openForWriting } from './home.ts';
import type { Io } from './io.ts';

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
  /** Runs another command line with the same input and output, and returns its exit code. */
  tape(argv: readonly string[]): Promise<number>;
}

/** Context of one command line; `main` runs the command lines that it starts itself. */
export function makeContext(
  io: Io,
  options: CommonOptions,
  main: (argv: readonly string[], io: Io) => Promise<number>,
): Context {
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
    changing: async (act) => during(openForWriting(getHome(home), io, options), act),
    answer: async ({ json, quiet, human }) => {
      if (options.quiet === true && quiet !== undefined) await io.out(quiet === '' ? '' : `${quiet}\n`);
      else if (options.json === true || options.jsonl === true) await io.out(`${JSON.stringify(json)}\n`);
      else await io.out(`${safe(human)}\n`);
    },
    status: (text) => {
      if (options.quiet !== true) io.err(`${safe(text)}\n`);
    },
    tape: (argv) => main(argv, io),
  };
}
