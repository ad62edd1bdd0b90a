import type { ChildProcess } from 'node:child_process';
import type { JSONRPCMessage, MCPTransport } from '@ai-sdk/mcp';
import { messageOf } from '../errors.ts';
import { endGroup, spawnGroup } from '../process-group.ts';
import { type Line, Lines } from './lines.ts';
import type { McpProgram } from './spec.ts';

/** The variables of the deck's environment that every server gets. It has keys of providers, which none gets. */
const inherited = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'];

/** How much of what a server writes to its standard error is kept for the message of an error, in characters. */
const errorMax = 500;

/** What a transport needs beside the server. */
export interface StdioOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string | undefined;
  /** The most bytes of one message. A server that sends four times as many without an answer is ended. */
  readonly messageBytes: number;
}

/**
 * Talks to a server over the standard streams of its process. The transport of the AI SDK keeps any length of a line in
 * memory, and ends the process alone, not what it has started.
 */
export class StdioTransport implements MCPTransport {
  readonly supportsProtocolVersionDiscovery = true;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  protocolVersion?: string;
  readonly #server: McpProgram;
  readonly #options: StdioOptions;
  readonly #lines: Lines;
  /** The requests without an answer. */
  readonly #pending = new Set<string | number>();
  #child: ChildProcess | undefined;
  #errors = '';
  #unanswered = 0;
  #ended: string | undefined;
  #isClosed = false;
  #ending: Promise<unknown> | undefined;

  constructor(server: McpProgram, options: StdioOptions) {
    this.#server = server;
    this.#options = options;
    this.#lines = new Lines(options.messageBytes);
  }

  /** Why the process has ended; undefined while it runs. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** The same, when nobody has closed it. */
  get fault(): string | undefined {
    return this.#isClosed ? undefined : this.#ended;
  }

  async start(): Promise<void> {
    const { command, args = [], env = {}, cwd = this.#options.cwd } = this.#server;
    const given = inherited.flatMap((name) => {
      const value = this.#options.env[name] ?? process.env[name];
      return value === undefined ? [] : [[name, value]];
    });
    const child = spawnGroup(command, args, {
      env: { ...Object.fromEntries(given), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(cwd !== undefined && { cwd }),
    });
    this.#child = child;
    const started = Promise.withResolvers<void>();
    child.once('spawn', started.resolve);
    child.once('error', (error) => {
      this.#end(messageOf(error));
      started.reject(error);
    });
    child.once('close', (code, signal) => {
      const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
      const last = this.#errors.trim().split('\n').at(-1) ?? '';
      this.#end(`it ended ${how}${last === '' ? '' : `: ${last}`}`);
    });
    child.stdin?.on('error', (error) => this.onerror?.(error));
    child.stdout?.on('data', (chunk: Buffer) => this.#receive(chunk));
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#errors = `${this.#errors}${chunk.toString('utf8')}`.slice(-errorMax);
    });
    await started.promise;
    // A server that nobody calls does not keep the process up.
    child.unref();
    for (const stream of [child.stdin, child.stdout, child.stderr])
      (stream as { unref?: () => void } | null)?.unref?.();
  }

  async send(message: JSONRPCMessage, { signal }: { signal?: AbortSignal } = {}): Promise<void> {
    const child = this.#child;
    if (child === undefined || this.#ended !== undefined)
      throw new Error(this.#ended ?? 'it was not started');
    const { id } = message as { id?: string | number };
    if (id !== undefined && 'method' in message) {
      this.#pending.add(id);
      signal?.addEventListener('abort', () => this.#cancel(id), { once: true });
    }
    child.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  /** Ends the process, and all that it started. */
  async close(): Promise<void> {
    if (this.#ended === undefined) this.#isClosed = true;
    this.#end('it was closed');
    await this.#ending;
  }

  /** Tells the server that nobody waits for an answer. One that comes anyway is dropped. */
  #cancel(id: string | number): void {
    if (!this.#pending.delete(id) || this.#ended !== undefined) return;
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } };
    this.#child?.stdin?.write(`${JSON.stringify(cancelled)}\n`);
  }

  #receive(chunk: Buffer): void {
    this.#unanswered += chunk.length;
    for (const line of this.#lines.push(chunk)) this.#take(line);
    if (this.#unanswered > 4 * this.#options.messageBytes)
      this.#end(`it sent ${this.#unanswered} bytes that answer nothing`);
  }

  #take(line: Line): void {
    if (this.#ended !== undefined) return;
    if (!('text' in line)) {
      const why = `its answer has more than ${this.#options.messageBytes} bytes`;
      for (const id of this.#answeredBy(line)) this.#refuse(id, why);
      return;
    }
    if (line.text.trim() === '') return;
    let id: string | number | undefined;
    try {
      const message = JSON.parse(line.text) as JSONRPCMessage & { readonly id?: string | number };
      if ('method' in message) this.onmessage?.(message);
      else if (message.id !== undefined && this.#pending.delete(message.id)) {
        ({ id } = message);
        this.#unanswered = 0;
        this.onmessage?.(message);
      }
      // A second answer, or one after a cancel, answers nothing.
    } catch (error) {
      if (id !== undefined) this.#refuse(id, `its answer cannot be read: ${messageOf(error)}`);
      this.onerror?.(error as Error);
    }
  }

  /** The request that a line answers that is too long, by its ends; else every one. */
  #answeredBy({
    head,
    tail,
  }: {
    readonly head: string;
    readonly tail: string;
  }): readonly (string | number)[] {
    const [, id] = /^\{"jsonrpc":"2\.0","id":(\d+)[,}]/.exec(head) ?? /"id":(\d+)\}\s*$/.exec(tail) ?? [];
    const found = [...this.#pending].filter((one) => id === undefined || String(one) === id);
    return found.length === 0 ? [...this.#pending] : found;
  }

  #refuse(id: string | number, message: string): void {
    this.#pending.delete(id);
    this.#unanswered = 0;
    this.onmessage?.({ jsonrpc: '2.0', id, error: { code: -32_000, message } });
  }

  /** Remembers why the process ends, and ends what is left of its group. */
  #end(why: string): void {
    if (this.#ended !== undefined) return;
    this.#ended = why;
    if (this.#child !== undefined) this.#ending = endGroup(this.#child);
    this.#pending.clear();
    this.onclose?.();
  }
}
