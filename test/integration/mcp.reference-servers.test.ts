import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { McpServers } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import type { JsonObject, SqliteTapeStore } from '@tapedeck/tape';
import { expect, onTestFinished, test } from 'vitest';
import { root } from '../support/imports.ts';
import { eventsOf, scriptedDeck } from '../support/scripted.ts';
import { tempDir } from '../support/temp-dir.ts';

/** The servers that the project of the protocol publishes, as programs. */
const programOf = (name: string) =>
  join(root, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
const reference = (name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [programOf(name), ...args],
});

let ids = 0;
const asking = (...calls: readonly (readonly [string, JsonObject?])[]): ScriptAnswer[] => [
  ...calls.map(([name, input = {}]) => {
    ids += 1;
    return { toolCalls: [{ id: `c${ids}`, name: `mcp_${name}`, input }] };
  }),
  { text: 'Done.' },
];

const outputs = (store: SqliteTapeStore, session = 'main') =>
  [...store.entries.read(session, { kind: 'tool-result' })].map(({ payload }) => {
    const { output } = payload as { readonly output: JsonObject };
    return typeof output.value === 'string' ? output.value : JSON.stringify(output.value);
  });

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { readonly port: number };
  server.close();
  return port;
}

/** The server with everything, over streamable HTTP. */
async function everythingAt(port: number): Promise<ChildProcess & AsyncDisposable> {
  const child = spawn(process.execPath, [programOf('everything'), 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const dispose = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'close');
  };
  // A test that times out goes no further, and a worker that ends runs no cleanup.
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  onTestFinished(async () => {
    await dispose();
    process.off('exit', kill);
  });
  let said = '';
  for await (const text of child.stderr) {
    said += text;
    if (said.includes(String(port))) break;
  }
  return Object.assign(child, { [Symbol.asyncDispose]: dispose });
}

test('sessions use the reference servers over their standard streams', async () => {
  await using dir = tempDir();
  const files = dir.file('files');
  mkdirSync(files);
  writeFileSync(join(files, 'plan.txt'), 'Tag, test, publish.');
  const mcpServers: McpServers = {
    everything: reference('everything'),
    files: reference('filesystem', files),
    memory: { ...reference('memory'), env: { MEMORY_FILE_PATH: dir.file('memory.jsonl') } },
  };
  const entities = [{ name: 'release', entityType: 'task', observations: ['waits for a review'] }];
  const answers = asking(
    ['everything_echo', { message: 'hello' }],
    ['everything_get-sum', { a: 19, b: 23 }],
    ['everything_get-tiny-image'],
    ['everything_get-sum', { a: 'nineteen' }],
    ['files_read_text_file', { path: join(files, 'plan.txt') }],
    ['files_read_text_file', { path: '/etc/passwd' }],
    ['memory_create_entities', { entities }],
    ['memory_search_nodes', { query: 'review' }],
  );
  await using home = await scriptedDeck(answers, { mcpServers, limits: { maxSteps: 20 } });
  const run = (await home.deck.session('main')).run('Go');
  expect(await run).toMatchObject({ finish: 'stop', text: 'Done.' });
  const found = outputs(home.store);
  expect(found).toEqual([
    'Echo: hello',
    expect.stringContaining('42'),
    expect.stringContaining('image/png'),
    expect.stringMatching(/invalid/i),
    'Tag, test, publish.',
    expect.stringMatching(/access denied/i),
    expect.stringContaining('release'),
    expect.stringContaining('waits for a review'),
  ]);
  const successes = (await eventsOf(run)).flatMap((event) =>
    event.type === 'tool-completed' ? [event.success] : [],
  );
  expect(successes).toEqual([true, true, true, false, true, false, true, true]);
});

test('over HTTP a session uses a server that was started again, and does without one that ended', async () => {
  const port = await freePort();
  const mcpServers: McpServers = { everything: { url: `http://127.0.0.1:${port}/mcp` } };
  await using home = await scriptedDeck([], { mcpServers, limits: { mcpResultBytes: 100_000 } });
  const found: string[] = [];
  // Scripts count the answers of a session, so each step has its own.
  const step = async (name: string, input: JsonObject, onCall = () => {}) => {
    const session = await home.deck.session(`step-${found.length}`);
    const run = session.run('Go', { model: home.script(asking([`everything_${name}`, input])) });
    const warnings: string[] = [];
    for await (const event of run) {
      if (event.type === 'tool-started') onCall();
      if (event.type === 'warning') warnings.push(event.message);
    }
    expect(await run).toMatchObject({ finish: 'stop', text: 'Done.' });
    found.push(...outputs(home.store, session.name));
    return warnings;
  };
  {
    await using _first = await everythingAt(port);
    await step('echo', { message: 'one' });
    await step('echo', { message: 'x'.repeat(200_000) });
  }
  {
    await using second = await everythingAt(port);
    await step('echo', { message: 'two' });
    const kill = () => setTimeout(() => second.kill('SIGKILL'), 300);
    await step('trigger-long-running-operation', { duration: 30, steps: 3 }, kill);
  }
  const [warning] = await step('echo', { message: 'three' });
  expect(warning).toMatch(/MCP server 'everything': .*ECONNREFUSED/);
  expect(found).toEqual([
    'Echo: one',
    "MCP server 'everything': its answer has more than 100000 bytes",
    'Echo: two',
    expect.stringMatching(/^MCP server 'everything': /),
    "Unknown tool 'mcp_everything_echo'.",
  ]);
});
