import type { Io, Terminal } from '@tapedeck/cli';

/** What a command line gets of its user. */
export interface Given {
  /** The tape home, as `TAPE_HOME`. */
  readonly home?: string;
  /** All of stdin; without it stdin is at its end. */
  readonly stdin?: string | Uint8Array;
  /** Beside `HOME`, which is no directory. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Whether stdout is a terminal. */
  readonly isTerminal?: boolean;
  /** Whether `stdin` is what a user types. */
  readonly stdinIsTerminal?: boolean;
  /** Its width; 80 columns unless given. */
  readonly columns?: number;
  readonly now?: () => number;
  /** Where a user types and reads key by key. */
  readonly terminal?: Terminal;
}

/** An environment for the command line that keeps its output. */
export function bufferedIo({
  home,
  stdin = '',
  env,
  cwd = process.cwd(),
  isTerminal = false,
  stdinIsTerminal = false,
  columns = 80,
  now = Date.now,
  terminal,
}: Given): {
  readonly io: Io;
  readonly said: { stdout: string; stderr: string };
  /** Presses Ctrl-C. */
  readonly interrupt: () => void;
} {
  const interrupts = new Set<() => void>();
  const said = { stdout: '', stderr: '' };
  const io: Io = {
    // A user without a home directory, who trusts every tape home: tests make them with the library.
    env: {
      HOME: '/nonexistent',
      TAPE_TRUST_HOME: '1',
      ...(home !== undefined && { TAPE_HOME: home }),
      ...env,
    },
    cwd,
    isTerminal,
    statusIsTerminal: isTerminal,
    stdinIsTerminal,
    stdinIsPipe: !stdinIsTerminal,
    columns,
    rows: 24,
    page: async () => {},
    done: async () => {},
    saveMemory: () => {},
    now,
    stdin: (async function* () {
      yield Buffer.from(stdin);
    })(),
    out: async (text) => {
      said.stdout += typeof text === 'string' ? text : Buffer.from(text).toString('utf8');
    },
    err: (text) => {
      said.stderr += text;
    },
    signal: new AbortController().signal,
    interrupted: false,
    onInterrupt: (act) => {
      interrupts.add(act);
      return { [Symbol.dispose]: () => void interrupts.delete(act) };
    },
    onStop: (act) => {
      interrupts.add(act);
      return { [Symbol.dispose]: () => void interrupts.delete(act) };
    },
    terminal: () => terminal,
  };
  return {
    io,
    said,
    interrupt: () => {
      for (const act of interrupts) act();
    },
  };
}
