import { createInterface, type Interface } from 'node:readline';
import { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { setImmediate } from 'node:timers/promises';
import type { Terminal } from '../io.ts';
import { asLine, type Keys, nextKeys, withLineEnds } from './keys.ts';

/** How the editor prompts for a line. */
interface Asking {
  /** The line to begin with. */
  readonly text?: string;
  /** Lines that were typed before, the last one first: the arrow keys find them. */
  readonly history?: readonly string[];
  /** What Tab can make of a line: whole words, and the part of the line that they replace. */
  readonly offers?: (line: string) => readonly [words: string[], part: string];
  /** A question: what was typed before it was asked is no answer, and Ctrl-C declines to give one. */
  readonly isQuestion?: boolean;
}

const continued = '… ';

/** What makes a terminal mark what is pasted, and no more. */
interface PasteMode {
  readonly on: string;
  readonly off: string;
}

/**
 * Asks for lines at a terminal, which a user edits with the keys of Node.js. Between two questions the terminal belongs
 * to the program that runs: Ctrl-C is a signal, and what is typed waits for the next line.
 */
export class Editor {
  readonly #terminal: Terminal;
  readonly #pasteMode: PasteMode;
  readonly #decoder = new StringDecoder('utf8');
  #typed = '';
  #isOver = false;
  /** The line that the user edits. */
  #line: Line | undefined;

  /** @param marksPastes whether the terminal can mark what is pasted */
  constructor(terminal: Terminal, { marksPastes }: { readonly marksPastes: boolean }) {
    this.#terminal = terminal;
    this.#pasteMode = marksPastes ? pasteMode : { on: '', off: '' };
    const { input, output } = terminal;
    terminal.onKill(() => {
      output.write(this.#pasteMode.off);
      input.setRawMode?.(false);
    });
    input.on('data', (chunk: Buffer | string) => {
      this.#typed += typeof chunk === 'string' ? chunk : this.#decoder.write(chunk);
      this.#feed();
    });
    input.once('end', () => {
      this.#isOver = true;
      this.#feed();
    });
    input.pause();
  }

  /** Reads a line; undefined when the user leaves: by Ctrl-D, by Ctrl-C twice, or with the end of the input. */
  async ask(prompt: string, asking: Asking = {}): Promise<string | undefined> {
    const { input } = this.#terminal;
    let before = '';
    input.resume();
    if (asking.isQuestion === true) {
      // One turn of the event loop reads what the system has kept.
      input.setRawMode?.(true);
      await setImmediate();
      await setImmediate();
      before = this.#typed;
      this.#typed = '';
    }
    const line = new Line(this.#terminal, prompt, { ...asking, pasteMode: this.#pasteMode });
    this.#line = line;
    this.#feed();
    try {
      return await line.done;
    } finally {
      this.#line = undefined;
      this.#typed = before + this.#typed;
      input.pause();
    }
  }

  /** Does what Ctrl-C does while the user edits a line; returns false when there is no line. */
  interrupt(): boolean {
    this.#line?.interrupt();
    return this.#line !== undefined;
  }

  #feed(): void {
    while (this.#line?.isDone === false) {
      const keys = nextKeys(this.#typed);
      if (keys === undefined) break;
      this.#typed = keys.rest;
      this.#line.take(keys);
    }
    if (this.#isOver) this.#line?.leave();
  }
}

/** One line that the user edits. */
class Line {
  readonly done: Promise<string | undefined>;
  isDone = false;
  readonly #resolve: (line: string | undefined) => void;
  readonly #keys: Readable & Pick<Terminal['input'], 'setRawMode'>;
  readonly #output: Terminal['output'];
  readonly #lines: Interface;
  readonly #prompt: string;
  readonly #isQuestion: boolean;
  readonly #pasteMode: PasteMode;
  /** The lines before this one, which a backslash continued. */
  #before: string[] = [];
  #wasInterrupted = false;
  #isInSequence = false;

  constructor(
    { input, output }: Terminal,
    prompt: string,
    asking: Asking & { readonly pasteMode: PasteMode },
  ) {
    const { text = '', history = [], offers, isQuestion = false } = asking;
    ({ promise: this.done, resolve: this.#resolve } = Promise.withResolvers());
    this.#output = output;
    this.#prompt = prompt;
    this.#isQuestion = isQuestion;
    this.#pasteMode = asking.pasteMode;
    this.#keys = Object.assign(new Readable({ read() {} }), {
      setRawMode: (raw: boolean) => input.setRawMode?.(raw),
    });
    this.#lines = createInterface({
      input: this.#keys,
      output,
      terminal: true,
      prompt,
      history: history.map(asLine),
      crlfDelay: Number.POSITIVE_INFINITY,
      ...(offers !== undefined && {
        completer: (line: string) => {
          const [words, part] = offers(line);
          return [words, part];
        },
      }),
    });
    this.#lines.on('line', (line) => this.#end(line));
    // The shell has the terminal while the process is stopped.
    this.#lines.on('SIGCONT', () => output.write(asking.pasteMode.on));
    output.write(asking.pasteMode.on);
    this.#lines.prompt();
    if (text !== '') this.#lines.write(asLine(text));
  }

  take({ text, isPasted }: Keys): void {
    const isInSequence = this.#isInSequence;
    this.#isInSequence = text === escapeKey;
    if (text !== interruption) this.#wasInterrupted = false;
    if (text === interruption) this.interrupt();
    else if (text === endOfInput && this.#lines.line === '') this.leave();
    else if (isPasted || (text.length > keysMax && !isInSequence)) this.#lines.write(text);
    // At once, so that keys and pastes stay in order.
    else this.#keys.emit('data', text);
  }

  interrupt(): void {
    const isEmpty = this.#lines.line === '' && this.#before.length === 0;
    if (this.#isQuestion || (isEmpty && this.#wasInterrupted)) {
      this.leave();
      return;
    }
    this.#wasInterrupted = true;
    this.#before = [];
    if (isEmpty) this.#output.write('\n(Ctrl-C again leaves)\n');
    this.#lines.write(null, { ctrl: true, name: 'e' });
    this.#lines.write(null, { ctrl: true, name: 'u' });
    this.#lines.setPrompt(this.#prompt);
    this.#lines.prompt();
  }

  leave(): void {
    if (this.isDone) return;
    this.#output.write('\n');
    this.#finish(undefined);
  }

  #end(line: string): void {
    if (!this.#isQuestion && isContinued(line)) {
      this.#before.push(line.slice(0, -1));
      this.#lines.setPrompt(continued);
      this.#lines.prompt();
    } else this.#finish(withLineEnds([...this.#before, line].join('\n')));
  }

  #finish(line: string | undefined): void {
    this.isDone = true;
    this.#output.write(this.#pasteMode.off);
    this.#lines.close();
    this.#resolve(line);
  }
}

/** Characters that are taken key by key, as the rest of a sequence may be; of more, each would draw the line anew. */
const keysMax = 64;

/** What Ctrl-C, Ctrl-D and the keys without a character begin with. */
const [interruption, endOfInput, escapeKey] = ['\u0003', '\u0004', '\u001b'];

const pasteMode: PasteMode = { on: '\u001b[?2004h', off: '\u001b[?2004l' };

/** Whether a line ends with a backslash that is not one of a pair. */
export function isContinued(line: string): boolean {
  return (/\\*$/.exec(line)?.[0].length ?? 0) % 2 === 1;
}
