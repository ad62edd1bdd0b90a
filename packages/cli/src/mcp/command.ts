import { isObject } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { PipeClosed } from '../io.ts';
import type { MaskedIo } from '../masked-io.ts';

/** The most bytes that a command line may print for one call. */
const printedMax = 16 * 1024 * 1024;

/** An error of a command line, as a client gets it. */
export class CallFailed extends Error {
  override readonly name = 'CallFailed';
  readonly code: string;
  readonly hint: string | undefined;
  readonly data: unknown;

  constructor({
    code,
    message,
    hint,
    data,
  }: { code: string; message: string; hint?: string; data?: unknown }) {
    super(message);
    this.code = code;
    this.hint = hint;
    this.data = data;
  }
}

/** Runs command lines for a client, one after another: each opens the home, and closes it. */
export class Commands {
  readonly #context: Context;
  readonly #common: readonly string[];
  #last: Promise<unknown> = Promise.resolve();

  constructor(context: Context) {
    const { home, base, durability } = context.options;
    this.#context = context;
    // A home that is found needs the same trust in each line as in this one.
    this.#common = [
      ...(home === undefined ? [] : [`--home=${home}`]),
      ...(base === undefined ? [] : [`--base=${base}`]),
      ...(durability === undefined ? [] : [`--durability=${durability}`]),
    ];
  }

  /**
   * The document that a command line prints with `--json`.
   * @throws CallFailed with the stable code of its error
   */
  async json(
    argv: readonly string[],
    given: { readonly stdin?: string; readonly signal: AbortSignal },
  ): Promise<unknown> {
    const { stdout, stderr } = await this.#run([...argv.slice(0, 1), '--json', ...argv.slice(1)], given);
    if (stdout.trim() !== '') return JSON.parse(stdout);
    throw failureIn(stderr);
  }

  /** The text that a command line prints. */
  async text(argv: readonly string[], given: { readonly signal: AbortSignal }): Promise<string> {
    const { stdout, stderr, code } = await this.#run(argv, given);
    if (code === 0) return stdout;
    throw new CallFailed({ code: 'CLI_USAGE', message: stderr.trim() });
  }

  async #run(
    [verb = '', ...words]: readonly string[],
    { stdin = '', signal }: { readonly stdin?: string; readonly signal: AbortSignal },
  ): Promise<{ readonly stdout: string; readonly stderr: string; readonly code: number }> {
    const before = this.#last;
    const over = Promise.withResolvers<void>();
    this.#last = over.promise;
    await before;
    try {
      signal.throwIfAborted();
      const printed = { stdout: '', stderr: '', isCut: false };
      const io = ioFor(this.#context.io, { stdin, signal, printed });
      const code = await this.#context.tape([verb, ...this.#common, ...words], io);
      if (printed.isCut)
        throw new CallFailed({
          code: 'CLI_USAGE',
          message: `cannot answer: it is more than ${printedMax} bytes; ask for fewer entries`,
        });
      return { ...printed, code };
    } finally {
      over.resolve();
    }
  }
}

/** Input and output of one command line: no terminal, and what it prints is kept. */
function ioFor(
  io: MaskedIo,
  {
    stdin,
    signal,
    printed,
  }: {
    readonly stdin: string;
    readonly signal: AbortSignal;
    readonly printed: { stdout: string; stderr: string; isCut: boolean };
  },
): MaskedIo {
  const either = AbortSignal.any([io.signal, signal]);
  const own: Partial<MaskedIo> = {
    isTerminal: false,
    statusIsTerminal: false,
    stdinIsTerminal: false,
    stdinIsPipe: false,
    columns: 80,
    stdin: (async function* () {
      yield Buffer.from(stdin);
    })(),
    out: async (text) => {
      printed.stdout += io.masked(typeof text === 'string' ? text : Buffer.from(text).toString('utf8'));
      if (printed.stdout.length <= printedMax) return;
      printed.isCut = true;
      throw new PipeClosed();
    },
    err: (text) => {
      if (printed.stderr.length < printedMax) printed.stderr += io.masked(text);
    },
    page: async () => {},
    done: async () => {},
    saveMemory: () => {},
    onInterrupt: () => ({ [Symbol.dispose]: () => {} }),
    onStop: () => ({ [Symbol.dispose]: () => {} }),
    terminal: () => undefined,
  };
  const fields = Object.entries(own).map(([name, value]) => [name, { value }]);
  return Object.create(io, {
    ...Object.fromEntries(fields),
    signal: { value: either },
    interrupted: { get: () => either.aborted },
  }) as MaskedIo;
}

/** The error in the last line of stderr that has one. */
function failureIn(stderr: string): CallFailed {
  const line = stderr.split('\n').findLast((text) => text.startsWith('{"error":'));
  const document: unknown = line === undefined ? undefined : JSON.parse(line);
  if (isObject(document) && isObject(document.error))
    return new CallFailed(document.error as unknown as ConstructorParameters<typeof CallFailed>[0]);
  return new CallFailed({ code: 'CLI_FAILED', message: stderr.trim() || 'the command printed nothing' });
}
