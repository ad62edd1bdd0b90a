import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio';
import { McpServersOfDeck } from '@tapedeck/runtime/internal';
import { gather } from './measure.ts';
import { type Bench, compared, type Row } from './topic.ts';

const program = new URL('../support/mcp-server.mjs', import.meta.url).pathname;
const server = { command: process.execPath, args: [program] };
const goal = { most: 1.1 };

/** Calls of a tool of a server that runs, through the servers of a deck and through the client alone. */
export async function mcp(bench: Bench): Promise<Row[]> {
  const servers = new McpServersOfDeck(
    { notes: server },
    {
      env: process.env,
      cwd: undefined,
      now: Date.now,
      most: 16,
      startTimeoutMs: 30_000,
      messageBytes: 4 * 1024 * 1024,
    },
  );
  const client = await createMCPClient({ transport: new StdioTransport(server) });
  try {
    using loan = await servers.lend([{ name: 'notes', start: true }], new AbortController().signal);
    const { execute } = loan.tools.mcp_notes_echo ?? {};
    if (execute === undefined) throw new Error('the server has no tool');
    const rows: Row[] = [];
    for (const [name, size] of [
      ['a short text', 10],
      ['a text of 100 KB', 100_000],
    ] as const) {
      const text = 'x'.repeat(size);
      const times = bench.size(size > 1_000 ? 50 : 500, 3);
      const options = { toolCallId: 'c', messages: [], context: {} };
      const ours = async () => {
        if ((await execute({ text }, options)) !== text) throw new Error('the answer is another one');
      };
      const alone = async () => {
        await client.callTool({ name: 'echo', arguments: { text } });
      };
      const taken = await gather(
        { ours: async () => await timed(ours, times), alone: async () => await timed(alone, times) },
        bench.size(40, 3),
      );
      rows.push(
        compared(taken.ours, taken.alone, {
          work: `call of a tool of an MCP server, which returns ${name}`,
          against: 'the client of the AI SDK alone',
          unit: 'µs',
          goal,
        }),
      );
    }
    return rows;
  } finally {
    await client.close();
    await servers.close();
  }
}

/** Microseconds an act. */
async function timed(act: () => Promise<void>, times: number): Promise<number> {
  const before = performance.now();
  for (let i = 0; i < times; i += 1) await act();
  return ((performance.now() - before) * 1000) / times;
}
