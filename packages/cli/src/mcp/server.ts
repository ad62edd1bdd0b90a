/**
 * Sessions for other agents, over the Model Context Protocol. `server.ts` answers a client on the streams of the command;
 * `tools.ts` says which command lines answer a call, `command.ts` runs them, and `fit.ts` cuts what is too long for a
 * model. `clients.ts` knows where programs keep their servers, `install.ts` has that written, and `toml-entry.ts` changes
 * one entry of such a file. Imports `install`, `context` and what lies below.
 */
import { Readable, Writable } from 'node:stream';
import type { Server as McpServer } from '@modelcontextprotocol/server';
import { isObject } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';
import { PipeClosed } from '../io.ts';
import { packageVersion } from '../package-file.ts';
import { CallFailed, Commands } from './command.ts';
import { answerMax } from './fit.ts';
import type { RunLine, TapeTool } from './tools.ts';

/** The most calls that wait for the one that runs. */
const waitingMax = 100;
/** How many sessions a page of the list of resources has. */
const pageSize = 100;

const instructions =
  'Sessions of an agent, each on a tape that only grows. Keep your work with append, mark points with anchor, fork a session to ' +
  'try something, and merge the child to give its result back. log and search read what was said; view shows what a model would see.';

/** Answers a client until it closes its end, or the process is interrupted. */
export async function serve(context: Context, { readOnly }: { readonly readOnly: boolean }): Promise<number> {
  const { io } = context;
  const { serveStdio, StdioServerTransport } = await import('@modelcontextprotocol/server/stdio');
  const { Server } = await import('@modelcontextprotocol/server');
  const { tools: all } = await import('./tools.ts');
  const tools = new Map(Object.entries(all).filter(([, { writes }]) => !readOnly || !writes));
  const commands = new Commands(context);
  const info = infoOf();
  const closed = Promise.withResolvers<void>();
  let failure: unknown;
  const input = Readable.from(io.stdin, { objectMode: false });
  const output = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      io.out(text).then(
        () => done(),
        (error) => {
          failure = error;
          done(error);
        },
      );
    },
  });
  const transport = new (class extends StdioServerTransport {
    override async close(): Promise<void> {
      await super.close();
      closed.resolve();
    }
  })(input, output);
  const connection = serveStdio(() => offering(new Server(info, options), { tools, commands }), {
    transport,
    onerror: ({ message }) => context.status(`Ignored what the client sent: ${message.slice(0, 500)}`),
  });
  const { signal } = io;
  const stop = () => void connection.close();
  signal.addEventListener('abort', stop, { once: true });
  if (io.stdinIsTerminal)
    context.status('Waiting for a client on stdin (see how to set one up with: tape help mcp)');
  await closed.promise;
  // The process would wait for what its client may still send.
  input.destroy();
  signal.removeEventListener('abort', stop);
  if (signal.aborted) return exit.interrupted;
  if (failure !== undefined && !(failure instanceof PipeClosed)) throw failure;
  return exit.done;
}

function infoOf(): { readonly name: string; readonly title: string; readonly version: string } {
  const version = packageVersion();
  return { name: 'tapedeck', title: 'Tapedeck', version };
}

const options = { capabilities: { tools: {}, resources: {} }, instructions };

interface Offer {
  readonly tools: ReadonlyMap<string, TapeTool>;
  readonly commands: Commands;
}

/** A server with these tools, and with sessions as resources. */
function offering(server: McpServer, { tools, commands }: Offer): McpServer {
  let waiting = 0;
  server.setRequestHandler('tools/list', async () => {
    const { z } = await import('zod');
    const listed = [...tools].map(([name, { title, description, input, writes }]) => ({
      name,
      title,
      description,
      inputSchema: z.toJSONSchema(input, { io: 'input' }) as { readonly type: 'object' },
      annotations: { readOnlyHint: !writes, destructiveHint: false, openWorldHint: false },
    }));
    return { tools: listed };
  });
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq: { signal } }) => {
    const tape: RunLine = async (argv, stdin = '') => await commands.json(argv, { stdin, signal });
    waiting += 1;
    try {
      if (waiting > waitingMax)
        throw new CallFailed({
          code: 'CLI_FAILED',
          message: `cannot call '${params.name}': ${waitingMax} calls wait`,
        });
      const answer = await called(tools.get(params.name), params, tape);
      return { content: [{ type: 'text', text: JSON.stringify(answer) }] };
    } catch (error) {
      if (signal.aborted) throw error;
      return {
        content: [{ type: 'text', text: JSON.stringify({ error: failureOf(error) }) }],
        isError: true,
      };
    } finally {
      waiting -= 1;
    }
  });
  server.setRequestHandler('resources/list', async ({ params }, { mcpReq: { signal } }) => {
    const from = Math.max(0, Number.parseInt(params?.cursor ?? '0', 10) || 0);
    const argv = ['sessions', '-n', String(from + pageSize + 1)];
    const all = (await asked(commands.json(argv, { signal }))) as readonly SessionRow[];
    const resources = all.slice(from, from + pageSize).map(({ session, title }) => ({
      uri: `${prefix}${encodeURIComponent(session)}`,
      name: session,
      ...(title !== undefined && { title }),
      mimeType: 'text/plain',
    }));
    return { resources, ...(all.length > from + pageSize && { nextCursor: String(from + pageSize) }) };
  });
  server.setRequestHandler('resources/templates/list', async () => ({
    resourceTemplates: [
      {
        uriTemplate: `${prefix}{name}`,
        name: 'session',
        title: 'The end of a session',
        mimeType: 'text/plain',
      },
    ],
  }));
  server.setRequestHandler('resources/read', async ({ params: { uri } }, { mcpReq: { signal } }) => {
    const session = sessionIn(uri);
    // Its error has a code, and that of a text has none.
    await asked(commands.json(['show', '--', session], { signal }));
    const log = await asked(commands.text(['log', '-n', '50', '--full', '--', session], { signal }));
    const text = log.length > answerMax ? `…${log.slice(-answerMax).toWellFormed()}` : log;
    return { contents: [{ uri, mimeType: 'text/plain', text }] };
  });
  return server;
}

interface SessionRow {
  readonly session: string;
  readonly title?: string;
}

/** How the addresses of sessions begin. */
const prefix = 'tape://session/';

/** The session of an address; a text that is no address names none. */
function sessionIn(uri: string): string {
  try {
    if (uri.startsWith(prefix)) return decodeURIComponent(uri.slice(prefix.length));
  } catch {
    // It has a percent sign that begins nothing.
  }
  return uri;
}

async function called(
  tool: TapeTool | undefined,
  {
    name,
    arguments: given = {},
  }: { readonly name: string; readonly arguments?: Record<string, unknown> | undefined },
  tape: RunLine,
): Promise<unknown> {
  if (tool === undefined)
    throw new CallFailed({
      code: 'CLI_USAGE',
      message: `cannot call '${name.slice(0, 200)}': there is no such tool`,
    });
  const { data, error } = tool.input.safeParse(given);
  const [issue] = error?.issues ?? [];
  if (issue === undefined) return await tool.run(data, tape);
  const field = issue.path.map(String).join('.');
  throw new CallFailed({
    code: 'CLI_USAGE',
    message: `cannot call '${name}': ${field === '' ? '' : `${field}: `}${issue.message}`,
    data: { field },
  });
}

/** The result of a request that is no call; its error is one of the protocol, with the stable code. */
async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const { ProtocolError, ProtocolErrorCode } = await import('@modelcontextprotocol/server');
    const { message, ...rest } = failureOf(error);
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, message, rest);
  }
}

function failureOf(error: unknown): { readonly code: string; readonly message: string } & object {
  if (error instanceof CallFailed) {
    const { code, message, hint, data } = error;
    return {
      code,
      message: message.slice(0, 2_000).toWellFormed(),
      ...(hint !== undefined && { hint }),
      ...(isObject(data) && JSON.stringify(data).length < 4_000 && { data }),
    };
  }
  return { code: 'CLI_FAILED', message: String(error).slice(0, 2_000).toWellFormed() };
}
