import type { Redact, Secret } from '@tapedeck/tape';
import { type Mask, maskFor, secretsIn } from '@tapedeck/tape/internal';
import type { Io } from './io.ts';

/** Input and output of a command line that prints no secret. */
export interface MaskedIo extends Io {
  /** Adds secrets to those of the environment. */
  hide(secrets: readonly Secret[]): void;
  /** A text without secrets, for what is kept elsewhere. */
  masked(text: string): string;
  /** What the configuration that was loaded says about the forms of secrets. */
  redact?: Redact;
}

/** Replaces the secrets of the environment by their names in all that is printed. */
export function maskedIo(io: Io): MaskedIo {
  let secrets = secretsIn(io.env);
  let mask: Mask | undefined = maskFor(secrets);
  return {
    env: io.env,
    cwd: io.cwd,
    isTerminal: io.isTerminal,
    // Node.js makes a stream when it is first read.
    get columns() {
      return io.columns;
    },
    get rows() {
      return io.rows;
    },
    get statusIsTerminal() {
      return io.statusIsTerminal;
    },
    get stdinIsTerminal() {
      return io.stdinIsTerminal;
    },
    get stdinIsPipe() {
      return io.stdinIsPipe;
    },
    get stdin() {
      return io.stdin;
    },
    out: (text) => io.out(mask === undefined ? text : mask.value(text)),
    page: () => io.page(),
    done: () => io.done(),
    saveMemory: (percent) => io.saveMemory(percent),
    now: () => io.now(),
    err: (text) => io.err(mask === undefined ? text : mask.text(text)),
    // Reading the signal changes what Ctrl-C does.
    get signal() {
      return io.signal;
    },
    get interrupted() {
      return io.interrupted;
    },
    onInterrupt: (act) => io.onInterrupt(act),
    onStop: (act) => io.onStop(act),
    terminal: () => io.terminal(),
    masked: (text) => (mask === undefined ? text : mask.text(text)),
    hide: (more) => {
      secrets = [...more, ...secrets];
      mask = maskFor(secrets);
    },
  };
}

/** The same input and output with another signal: for one act of a command that outlives Ctrl-C. */
export function withSignal(io: MaskedIo, signal: AbortSignal): MaskedIo {
  return Object.create(io, {
    signal: { value: signal },
    interrupted: { get: () => signal.aborted },
  }) as MaskedIo;
}

/** A console that prints where status goes: stdout is for answers, and configurations and their tools print too. */
export function consoleOn({
  env,
  err,
  statusIsTerminal,
}: Pick<Io, 'env' | 'err' | 'statusIsTerminal'>): Console {
  const { Console } = process.getBuiltinModule('node:console');
  const { Writable } = process.getBuiltinModule('node:stream');
  const stdout = new Writable({
    decodeStrings: false,
    write: (text, _encoding, done) => {
      err(String(text));
      done();
    },
  });
  return new Console({ stdout, colorMode: statusIsTerminal && (env.NO_COLOR ?? '') === '' });
}
