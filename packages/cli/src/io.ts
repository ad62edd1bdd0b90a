import { once } from 'node:events';
import { isAbsolute } from 'node:path';
import { safe } from './escape.ts';
import type { Pager } from './pager.ts';
import { chunksOf, isPipe, isPlain, writeTo } from './plain-streams.ts';

/** Environment, input and output of the command line; verbs use nothing else of the process. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Whether stdout is a terminal, and its width. */
  readonly isTerminal: boolean;
  readonly columns: number;
  /** Number of lines of the terminal. */
  readonly rows: number;
  /** Whether stderr is a terminal. */
  readonly statusIsTerminal: boolean;
  /** Whether stdin is a terminal: only then a question has an answer. */
  readonly stdinIsTerminal: boolean;
  /** Whether stdin is a pipe, which ends when the program ends that holds its other end. */
  readonly stdinIsPipe: boolean;
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Writes data; resolves when more may be written. */
  out(text: string | Uint8Array): Promise<void>;
  /** Shows what is written from here on in a pager, if stdout is a terminal and it is longer than that. */
  page(): Promise<void>;
  /** Ends the output: waits until the user leaves the pager. */
  done(): Promise<void>;
  /**
   * Called before work on many sessions or entries: V8 would let the garbage of such work grow to 200 MB before it collects
   * it, although little of it is in use at a time.
   * @param percent by how much it may grow
   */
  saveMemory(percent?: number): void;
  /** The time, in milliseconds since 1970. */
  now(): number;
  /** Writes status, hints, progress and errors. */
  err(text: string): void;
  /**
   * Aborted by Ctrl-C. Before the first access, Ctrl-C ends the process; after it, the caller must end it.
   */
  readonly signal: AbortSignal;
  /** Whether Ctrl-C has aborted `signal`. */
  readonly interrupted: boolean;
  /** Calls `act` with each Ctrl-C until it is disposed of; the process does not end. */
  onInterrupt(act: () => void): Disposable;
  /**
   * Calls `act` with the first Ctrl-C or SIGTERM, in place of the end of the process; a second one ends it. Nothing is called
   * after it was disposed of.
   */
  onStop(act: () => void): Disposable;
  /** The terminal at which the user types and reads; undefined unless stdin and stdout are terminals. */
  terminal(): Terminal | undefined;
}

/** A terminal whose keys can be read one by one. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream & {
    /** Passes each key on as it is typed; else the system passes lines, and Ctrl-C is a signal. */
    setRawMode?(raw: boolean): unknown;
  };
  readonly output: NodeJS.WritableStream;
  /** Calls `act` before SIGHUP or SIGTERM ends the process, to leave the terminal as it was. */
  onKill(act: () => void): void;
}

/** The reader of stdout has closed it. Not a failure: `tape log main | head` exits 0. */
export class PipeClosed extends Error {}

/** Resolves when a stream drains or closes; its error listener handles errors. */
async function drained(stream: NodeJS.WriteStream): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  const event = (name: string) => once(stream, name, { signal }).catch(() => {});
  await Promise.race([event('drain'), event('close')]);
  over.abort();
}

/** Calls `act` before one of these signals ends the process, as it does without a listener. */
function beforeKill(act: () => void): void {
  for (const signal of ['SIGHUP', 'SIGTERM'] as const)
    process.once(signal, () => {
      try {
        act();
      } finally {
        process.kill(process.pid, signal);
      }
    });
}

/**
 * Where this process was started. One that was removed since has no path of its own any more, and is what the shell calls it:
 * most verbs need none, and an import that a hook starts is not the one to lose for it.
 */
function workingDirectory(): string {
  try {
    return process.cwd();
  } catch {
    const { PWD: named = '' } = process.env;
    return isAbsolute(named) ? named : '/nowhere';
  }
}

/** The process itself. */
export function nodeIo(): Io & {
  /** Calls `then` once all output has been passed to the system. */
  flushed(then: () => void): void;
} {
  let failure: Error | undefined;
  const failed = (error: NodeJS.ErrnoException) => (error.code === 'EPIPE' ? new PipeClosed() : error);
  const hasFile = isPlain(1);
  const isTerminal = !hasFile && process.stdout.isTTY === true;
  let stderr: NodeJS.WriteStream | undefined;
  // Node.js makes a stream when it is first read.
  let opened: NodeJS.WriteStream | undefined;
  const stdout = () => {
    opened ??= process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      failure = failed(error);
    });
    return opened;
  };
  /** Returns what is left to write. A verb that listens to Ctrl-C runs for long, and must not wait for a reader. */
  const printAtOnce = (text: string | Uint8Array): string | Uint8Array => {
    if (opened !== undefined || interrupt !== undefined || !hasFile) return text;
    try {
      return writeTo(1, Buffer.from(text));
    } catch (error) {
      failure = failed(error as NodeJS.ErrnoException);
      throw failure;
    }
  };
  const print = async (text: string | Uint8Array) => {
    if (failure !== undefined) throw failure;
    const rest = printAtOnce(text);
    if (rest.length > 0 && !stdout().write(rest)) await drained(stdout());
    if (failure !== undefined) throw failure;
  };
  let pager: Pager | undefined;
  let interrupt: AbortController | undefined;
  const listen = (): AbortController => {
    const controller = new AbortController();
    process.once('SIGINT', () => controller.abort(new Error('interrupted')));
    return controller;
  };
  return {
    env: process.env,
    cwd: workingDirectory(),
    isTerminal,
    get columns() {
      // A terminal without a size has 0 columns.
      return (isTerminal ? process.stdout.columns : 0) || process.stderr.columns || 80;
    },
    get rows() {
      return (isTerminal ? process.stdout.rows : 0) || process.stderr.rows || 24;
    },
    get statusIsTerminal() {
      return process.stderr.isTTY === true;
    },
    get stdinIsTerminal() {
      return process.stdin.isTTY === true;
    },
    get stdinIsPipe() {
      return isPipe(0);
    },
    get stdin() {
      return opened === undefined && interrupt === undefined && isPlain(0)
        ? chunksOf(0, () => process.stdin)
        : process.stdin;
    },
    out: async (text) => {
      if (pager === undefined) return await print(text);
      await pager.write(typeof text === 'string' ? text : Buffer.from(text).toString()).catch((error) => {
        throw failed(error);
      });
    },
    async page() {
      if (!isTerminal) return;
      const { Pager } = await import('./pager.ts');
      pager ??= new Pager({
        env: process.env,
        columns: this.columns,
        rows: this.rows,
        print,
        warn: (line) => this.err(`${safe(line)}\n`),
      });
    },
    async done() {
      await pager?.end();
      pager = undefined;
    },
    flushed: (then) => {
      const status = () => (stderr === undefined ? then() : void stderr.write('', then));
      if (opened === undefined) status();
      else opened.write('', status);
    },
    saveMemory: (percent = 50) => {
      const { setFlagsFromString } = process.getBuiltinModule('node:v8');
      setFlagsFromString(`--semi-space-growth-factor=1 --heap-growing-percent=${percent} --expose-gc`);
      // What reads one long line after another collects what is left of them, unless the flag was not taken.
      globalThis.gc ??= process.getBuiltinModule('node:vm').runInNewContext('globalThis.gc');
    },
    now: () => Date.now(),
    err: (text) => {
      stderr ??= process.stderr.on('error', () => {});
      stderr.write(text);
    },
    get signal() {
      interrupt ??= listen();
      return interrupt.signal;
    },
    get interrupted() {
      return interrupt?.signal.aborted === true;
    },
    onInterrupt: (act) => {
      process.on('SIGINT', act);
      return { [Symbol.dispose]: () => void process.off('SIGINT', act) };
    },
    onStop: (act) => {
      const names = ['SIGINT', 'SIGTERM'] as const;
      const off = () => {
        for (const name of names) process.off(name, stop);
      };
      const stop = () => {
        off();
        act();
      };
      for (const name of names) process.on(name, stop);
      return { [Symbol.dispose]: off };
    },
    terminal: () =>
      isTerminal && process.stdin.isTTY === true
        ? { input: process.stdin, output: stdout(), onKill: beforeKill }
        : undefined,
  };
}
