import { setTimeout as sleep } from 'node:timers/promises';
import { isObject } from '../entry/json.ts';

/** The version of what two sides say to each other. A side that has another one says so and ends. */
export const wireVersion = 1;

/** The longest line. What is larger is sent in pieces. */
const lineMax = 1024 * 1024;
/** Bytes of one piece of a bundle, before base64. */
const pieceBytes = 256 * 1024;
/** How many lines in a row may only say that work goes on. */
const aliveMax = 100_000;
/** How often such a line is sent at most, in milliseconds. */
const aliveMs = 1_000;

/** A line: an object. What is in its fields is checked by its reader. */
export type Message = Readonly<Record<string, unknown>>;

/** The connection was lost, or the other side says what it must not. The message says why. */
export class WireError extends Error {
  /** Whether the other side is gone. */
  readonly isLost: boolean;
  /** Whether the other side says that it has no such home. */
  readonly isMissing: boolean;

  constructor(
    message: string,
    {
      isLost = false,
      isMissing = false,
      cause,
    }: { readonly isLost?: boolean; readonly isMissing?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.isLost = isLost;
    this.isMissing = isMissing;
  }
}

/** The streams of a connection. */
export interface WireStreams {
  readonly input: AsyncIterable<Uint8Array>;
  /** Resolves when more may be written. */
  readonly output: (text: string) => Promise<unknown>;
  /** How long the other side may be silent, in milliseconds. */
  readonly idleMs: number;
}

/** JSON lines from and to another side, with limits of their size, and of the time between them. */
export class Wire {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #output: (text: string) => Promise<unknown>;
  readonly #idleMs: number;
  #left: Buffer = Buffer.alloc(0);
  #aliveAt = 0;
  /** Bytes that were received and sent. */
  received = 0;
  sent = 0;

  constructor({ input, output, idleMs }: WireStreams) {
    this.#chunks = input[Symbol.asyncIterator]();
    this.#output = output;
    this.#idleMs = idleMs;
  }

  async send(message: Message): Promise<void> {
    const line = `${JSON.stringify(message)}\n`;
    this.sent += line.length;
    try {
      await this.#inTime(this.#output(line));
    } catch (cause) {
      if (cause instanceof WireError) throw cause;
      throw await this.#lastWords(cause);
    }
  }

  /** Says, once in a while, that work goes on which has no answer yet. */
  alive(): void {
    if (Date.now() - this.#aliveAt < aliveMs) return;
    this.#aliveAt = Date.now();
    // The next message waits for it.
    void this.#output('{"alive":true}\n').catch(() => {});
  }

  /** The next message. @throws WireError at the end, and for an error that the other side reports */
  async receive(): Promise<Message> {
    for (let alive = 0; alive < aliveMax; alive += 1) {
      const message = parsedLine(await this.#line());
      if (isObject(message.error)) throw toldBy(message.error);
      if (message.alive !== true) return message;
    }
    throw new WireError('it says nothing but that it works');
  }

  /** Sends bytes in pieces, and how many there were. Returns that. */
  async sendBytes(chunks: AsyncIterable<Uint8Array>): Promise<number> {
    let bytes = 0;
    for await (const chunk of chunks)
      for (let at = 0; at < chunk.length; at += pieceBytes) {
        const piece = Buffer.from(chunk.subarray(at, at + pieceBytes));
        bytes += piece.length;
        await this.send({ b: piece.toString('base64') });
      }
    await this.send({ bytes });
    return bytes;
  }

  /** The bytes that `sendBytes` sends. @throws WireError when they end early */
  async *receiveBytes(): AsyncGenerator<Uint8Array, number> {
    let bytes = 0;
    for (;;) {
      const { b, bytes: all } = await this.receive();
      if (typeof b !== 'string') {
        if (all === bytes) return bytes;
        throw new WireError('it sent another number of bytes than it says');
      }
      const piece = Buffer.from(b, 'base64');
      // Without end, such pieces would keep both sides busy for ever.
      if (piece.length === 0) throw new WireError('it sent a piece without bytes');
      bytes += piece.length;
      yield piece;
    }
  }

  /** Why the other side takes nothing more: it may have said so before it ended. */
  async #lastWords(cause: unknown): Promise<WireError> {
    try {
      for (let left = 0; left < aliveMax; left += 1) await this.receive();
    } catch (error) {
      if (error instanceof WireError) return error;
    }
    return new WireError('the connection was lost', { isLost: true, cause });
  }

  async #line(): Promise<string> {
    const parts: Buffer[] = [];
    let length = 0;
    for (let chunk = this.#left; ; chunk = await this.#chunk()) {
      const at = chunk.indexOf(0x0a);
      parts.push(at < 0 ? chunk : chunk.subarray(0, at));
      length += parts.at(-1)?.length ?? 0;
      if (length > lineMax) throw new WireError(`a line of it has over ${lineMax} bytes`);
      if (at < 0) continue;
      this.#left = chunk.subarray(at + 1);
      return Buffer.concat(parts).toString('utf8');
    }
  }

  async #chunk(): Promise<Buffer> {
    const { done, value } = await this.#inTime(this.#chunks.next());
    if (done === true) throw new WireError('the connection was lost', { isLost: true });
    this.received += value.length;
    return Buffer.from(value);
  }

  async #inTime<T>(act: Promise<T>): Promise<T> {
    const over = new AbortController();
    const silence = sleep(this.#idleMs, undefined, { signal: over.signal }).then(() => {
      throw new WireError(`no answer for ${this.#idleMs / 1000} seconds`);
    });
    try {
      return await Promise.race([act, silence]);
    } finally {
      over.abort();
      silence.catch(() => {});
    }
  }
}

/** An error of the other side. */
function toldBy({ message, data }: Message): WireError {
  return new WireError(`it says '${textIn(message)}'`, {
    isMissing: isObject(data) && data.missing === true,
  });
}

function parsedLine(line: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // It is named below.
  }
  if (isObject(value)) return value;
  throw new WireError(`it says something else than tape does: '${textIn(line)}'`);
}

/** The beginning of a text of another side. */
export function textIn(value: unknown): string {
  const text = typeof value === 'string' ? value : '';
  return (text.length > 300 ? `${text.slice(0, 300)}…` : text).toWellFormed();
}
