import type { CallToolResult, MCPClient } from '@ai-sdk/mcp';
import { messageOf } from '../errors.ts';
import { boundedFetch, type Loss } from './http.ts';
import { type ListedTool, listTools } from './listed-tools.ts';
import type { McpServer } from './spec.ts';
import { StdioTransport } from './stdio.ts';

/** What connections need beside their servers. */
export interface ConnectionOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string | undefined;
  /** How long a server may take to start, and to list its tools. */
  readonly startTimeoutMs: number;
  /** The most bytes of one message of a server. */
  readonly messageBytes: number;
}

/** The most tools of a server, and the most pages of its list. */
const [toolsMax, pagesMax] = [1_000, 100];

/** The most characters of what a server says about an error. */
const errorMax = 2_000;

/** A server that is lost: it ended, or cannot be reached. */
export class LostServer extends Error implements Loss {
  override readonly name = 'LostServer';
  readonly why: string;
  readonly wasDelivered: boolean;

  constructor({ why, wasDelivered }: Loss) {
    super(wasDelivered ? `${why}; whether the call was carried out is unknown` : why);
    this.why = why;
    this.wasDelivered = wasDelivered;
  }
}

/** A server that has started. It lasts until the server ends, or is closed. */
export class Connection {
  readonly #client: MCPClient;
  readonly #transport: StdioTransport | undefined;
  readonly #timeoutMs: number;
  #loss: Loss | undefined;
  /** Whether a call of a tool was answered. */
  hasAnswered = false;

  private constructor(
    client: MCPClient,
    { transport, timeoutMs }: { transport: StdioTransport | undefined; timeoutMs: number },
  ) {
    this.#client = client;
    this.#transport = transport;
    this.#timeoutMs = timeoutMs;
  }

  /** Starts a server, or connects to one. */
  static async open(
    server: McpServer,
    options: ConnectionOptions & { readonly signal: AbortSignal },
  ): Promise<Connection> {
    const { createMCPClient } = await import('@ai-sdk/mcp');
    const { startTimeoutMs: timeout, messageBytes, signal } = options;
    let connection: Connection | undefined;
    const lost = (loss: Loss) => {
      if (connection !== undefined) connection.#loss ??= loss;
    };
    const transport = 'url' in server ? undefined : new StdioTransport(server, options);
    const headers = 'url' in server ? server.headers : undefined;
    try {
      const client = await createMCPClient({
        clientName: 'tapedeck',
        transport:
          'url' in server
            ? {
                type: 'http',
                url: server.url,
                fetch: boundedFetch(messageBytes, lost),
                ...(headers !== undefined && { headers: { ...headers } }),
              }
            : (transport as StdioTransport),
        initializationOptions: { timeout, signal },
        // What it sends beside answers, or cannot be read, is dropped.
        onUncaughtError: () => {},
      });
      connection = new Connection(client, { transport, timeoutMs: timeout });
      return connection;
    } catch (error) {
      const fault = transport?.fault;
      await transport?.close();
      throw new Error(clipped(fault ?? messageOf(error)), { cause: error });
    }
  }

  /** Why it cannot be used any more; undefined while it can. */
  get loss(): Loss | undefined {
    const ended = this.#transport?.ended;
    return this.#loss ?? (ended === undefined ? undefined : { why: ended, wasDelivered: true });
  }

  /** All tools of the server. */
  async list(): Promise<readonly ListedTool[]> {
    const signal = AbortSignal.timeout(this.#timeoutMs);
    const tools: ListedTool[] = [];
    const seen = new Set<string>();
    for (let cursor: string | undefined; ; ) {
      const page = await this.#asked(() =>
        listTools(this.#client, {
          ...(cursor !== undefined && { params: { cursor } }),
          options: { signal, timeout: this.#timeoutMs },
        }),
      );
      tools.push(...page.tools);
      cursor = page.nextCursor;
      if (cursor === undefined || cursor === '') return tools;
      if (tools.length > toolsMax) throw new Error(`it lists more than ${toolsMax} tools`);
      if (seen.has(cursor) || seen.size >= pagesMax) throw new Error('its list of tools has no end');
      seen.add(cursor);
    }
  }

  /** Calls a tool. The executor of calls waits no longer than their timeout. */
  async call(name: string, input: unknown, signal: AbortSignal | undefined): Promise<CallToolResult> {
    const loss = this.loss;
    if (loss !== undefined) throw new LostServer({ ...loss, wasDelivered: false });
    const result = await this.#asked(() =>
      this.#client.callTool({
        name,
        arguments: (input ?? {}) as Record<string, unknown>,
        ...(signal !== undefined && { options: { signal } }),
      }),
    );
    this.hasAnswered = true;
    return result;
  }

  async close(): Promise<void> {
    // A server that does not answer the end of its session is left alone.
    const closing = this.#client.close().catch(() => {});
    const timeout = new Promise<void>((resolve) => setTimeout(resolve, closeMs).unref());
    await (this.#transport?.close() ?? Promise.race([closing, timeout]));
  }

  async #asked<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      const { loss } = this;
      if (loss !== undefined) throw new LostServer({ ...loss, why: clipped(loss.why) });
      throw new Error(clipped(detailOf(error)), { cause: error });
    }
  }
}

/** How long the end of a session at an address is waited for, in milliseconds. */
const closeMs = 1_000;

/** The message of an error, and what is behind it where it says nothing itself. */
function detailOf(error: unknown): string {
  const { cause } = error as { readonly cause?: unknown };
  const message = messageOf(error);
  return /^Failed to /.test(message) && cause !== undefined ? `${message}: ${messageOf(cause)}` : message;
}

function clipped(text: string): string {
  return text.length > errorMax ? `${text.slice(0, errorMax).toWellFormed()}…` : text;
}
