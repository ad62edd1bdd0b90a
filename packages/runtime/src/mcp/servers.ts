/**
 * The MCP servers of a deck. `spec.ts` is what a configuration says of one, `servers.ts` keeps those that have started,
 * `connection.ts` is one of them, over `stdio.ts` (whose processes `process-group` starts and ends, and whose lines
 * `lines.ts` cuts) or over `http.ts`. `listed-tools.ts` reads the list of a server, `tools.ts` makes tools of it, `schema-fault.ts` refuses schemas that
 * no model can be sent, `drift.ts` compares tools with those of the last run, and `secrets.ts` finds what a configuration
 * hides. Imports `process-group`, `tools` and `errors`.
 */
import type { CallToolResult } from '@ai-sdk/mcp';
import { messageOf } from '../errors.ts';
import type { DeckTools } from '../tools/traits.ts';
import { Connection, type ConnectionOptions, LostServer } from './connection.ts';
import { expanded, type McpServer, type McpServers } from './spec.ts';
import { type Offered, offeredTools } from './tools.ts';

/** The tools that a run borrows. Disposing gives the servers back, which go on running. */
export interface Loan extends Disposable {
  readonly tools: DeckTools;
  /** The digests of all tools of each server that answered. */
  readonly digests: ReadonlyMap<string, Readonly<Record<string, string>>>;
  /** Which servers and tools are missing, and why. */
  readonly warnings: readonly string[];
}

/** A server that a run asks for. One that must not be started is offered only while it runs. */
export interface Wanted {
  readonly name: string;
  readonly start: boolean;
}

/** What the servers of a deck need. */
export interface McpOptions extends ConnectionOptions {
  /** How many servers run at once. */
  readonly most: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** How long a server that cannot start, or ends again and again, is not started, in milliseconds. */
const restMs = 60_000;

/** The servers of a deck, each started when a session may call one of its tools, and shared by all sessions. */
export class Servers {
  readonly #servers: ReadonlyMap<string, Server>;
  readonly #most: number;
  /** Those that run, the one that was borrowed longest ago first. */
  readonly #running = new Set<Server>();
  #isClosed = false;

  constructor(servers: McpServers, options: McpOptions) {
    this.#most = options.most;
    this.#servers = new Map(
      Object.entries(servers).map(([name, spec]) => [name, new Server(name, spec, options)]),
    );
  }

  /** Lends servers to a run: starts those that do not run, and lists their tools. Never throws for a server. */
  async lend(wanted: readonly Wanted[], signal: AbortSignal): Promise<Loan> {
    const lent: Server[] = [];
    const warnings: string[] = [];
    const offers = new Map<string, Offered>();
    for (const { name, start } of wanted) {
      const server = this.#servers.get(name);
      if (server === undefined || (!start && !this.#running.has(server))) continue;
      if (this.#makeRoom(server)) {
        server.loans += 1;
        lent.push(server);
      } else
        warnings.push(`cannot start MCP server '${name}': ${this.#most} run already, which is the limit`);
    }
    await Promise.all(
      lent.map(async (server) => {
        try {
          const offered = await untilAborted(server.offer(), signal);
          offers.set(server.name, offered);
          for (const text of offered.omitted)
            warnings.push(`cannot offer a tool of MCP server '${server.name}': ${text}`);
        } catch (error) {
          if (!signal.aborted) warnings.push(messageOf(error));
          if (!server.isUp) this.#running.delete(server);
        }
      }),
    );
    const inOrder = lent.flatMap(({ name }) => {
      const offered = offers.get(name);
      return offered === undefined ? [] : [[name, offered] as const];
    });
    return {
      tools: Object.fromEntries(inOrder.flatMap(([, { tools }]) => [...tools])),
      digests: new Map(inOrder.map(([name, { digests }]) => [name, digests])),
      warnings,
      [Symbol.dispose]: () => {
        for (const server of lent.splice(0)) server.loans -= 1;
      },
    };
  }

  /** Ends all servers. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#servers.values()].map((server) => server.close()));
    this.#running.clear();
  }

  /** Counts a server among those that run; ends the one for it that no run has borrowed for longest. */
  #makeRoom(server: Server): boolean {
    if (this.#isClosed) return false;
    if (!this.#running.delete(server) && this.#running.size >= this.#most) {
      const idle = [...this.#running].find(({ loans }) => loans === 0);
      if (idle === undefined) return false;
      this.#running.delete(idle);
      void idle.end();
    }
    this.#running.add(server);
    return true;
  }
}

/** One server: its connection, and what is to be known when it is lost. */
class Server {
  readonly name: string;
  /** How many runs have borrowed it. */
  loans = 0;
  readonly #spec: McpServer;
  readonly #options: McpOptions;
  #connection: Promise<Connection> | undefined;
  /** How often it was lost since it last answered a call. */
  #losses = 0;
  #failure: { readonly error: Error; readonly at: number } | undefined;
  readonly #closing = new AbortController();

  constructor(name: string, spec: McpServer, options: McpOptions) {
    this.name = name;
    this.#spec = spec;
    this.#options = options;
  }

  get isUp(): boolean {
    return this.#connection !== undefined;
  }

  /** Lists its tools, after a start if it does not run. */
  async offer(): Promise<Offered> {
    const connection = await this.#connect();
    const listed = await this.#named('list the tools of', connection.list()).catch(async (error) => {
      if (connection.loss === undefined) throw error;
      return await this.#named('list the tools of', (await this.#connect()).list());
    });
    const call = async (name: string, input: unknown, signal: AbortSignal | undefined) =>
      await this.#call(name, { input, signal });
    return await offeredTools(this.name, listed, { call, timeoutMs: this.#spec.timeoutMs });
  }

  /** Ends it until it is wanted again. */
  async end(): Promise<void> {
    const connection = await this.#connection?.catch(() => undefined);
    this.#connection = undefined;
    await connection?.close();
  }

  /** Ends it for good. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the deck was closed'));
    await this.end();
  }

  /** Calls a tool. A server that was lost before is started again, and one that does not know the call is asked again. */
  async #call(
    name: string,
    { input, signal }: { readonly input: unknown; readonly signal: AbortSignal | undefined },
  ): Promise<CallToolResult> {
    for (let isAgain = false; ; isAgain = true) {
      const connection = await this.#connect();
      try {
        const result = await connection.call(name, input, signal);
        this.#losses = 0;
        return result;
      } catch (error) {
        if (isAgain || !(error instanceof LostServer) || error.wasDelivered)
          throw new Error(`MCP server '${this.name}': ${messageOf(error)}`, { cause: error });
      }
    }
  }

  /** The connection that can be used. */
  async #connect(): Promise<Connection> {
    const { now } = this.#options;
    const current = await this.#connection?.catch(() => undefined);
    if (current !== undefined && current.loss === undefined) return current;
    if (current !== undefined && (await this.#connection) === current) {
      this.#connection = undefined;
      this.#losses += 1;
      void current.close();
      const why = current.loss?.why ?? 'it was lost';
      if (this.#losses > 1) this.#fail(`it was lost ${this.#losses} times without an answer: ${why}`);
    }
    if (this.#failure !== undefined && now() - this.#failure.at < restMs) throw this.#failure.error;
    if (this.#closing.signal.aborted)
      throw new Error(`cannot use MCP server '${this.name}': the deck was closed`);
    this.#failure = undefined;
    this.#connection ??= this.#open();
    return await this.#connection;
  }

  async #open(): Promise<Connection> {
    try {
      const { env } = this.#options;
      return await Connection.open(expanded(this.#spec, env), {
        ...this.#options,
        signal: this.#closing.signal,
      });
    } catch (error) {
      this.#connection = undefined;
      throw this.#fail(messageOf(error));
    }
  }

  #fail(why: string): Error {
    const error = new Error(`cannot start MCP server '${this.name}': ${why}`);
    this.#failure = { error, at: this.#options.now() };
    this.#losses = 0;
    return error;
  }

  async #named<T>(act: string, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw new Error(`cannot ${act} MCP server '${this.name}': ${messageOf(error)}`, { cause: error });
    }
  }
}

/** Waits no longer than the run does. What was started goes on for others. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => {});
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const stop = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
