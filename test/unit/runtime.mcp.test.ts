import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { DeckOptions, McpServers, Run } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import type { JsonObject, SqliteTapeStore } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { root } from '../support/imports.ts';
import { isAlive } from '../support/is-alive.ts';
import { entryLines, eventsOf, type ScriptedDeck, scriptedDeck } from '../support/scripted.ts';
import { atFullSize } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

/** A text that stands for a variable. */
const variable = (name: string) => `\${${name}}`;

const program = join(root, 'test/support/mcp-server.mjs');

/** A server with these faults. */
const notes = (...faults: string[]): McpServers => ({ notes: server(...faults) });
const server = (...faults: string[]) => ({ command: process.execPath, args: [program, ...faults] });

let ids = 0;
const call = (tool: string, input: JsonObject = {}) => {
  ids += 1;
  return { id: `c${ids}`, name: `mcp_notes_${tool}`, input };
};
/** A model that calls these tools, each in an answer of its own. */
const asking = (...calls: ReturnType<typeof call>[]): ScriptAnswer[] => [
  ...calls.map((one) => ({ toolCalls: [one] })),
  { text: 'Done.' },
];
const deckOf = async (
  answers: readonly ScriptAnswer[],
  options: Partial<DeckOptions> & { store?: SqliteTapeStore } = {},
): Promise<ScriptedDeck> => await scriptedDeck(answers, { mcpServers: notes(), ...options });

/** The outputs of the calls of a session, with `!` before errors. */
const outputs = (store: SqliteTapeStore, session = 'main') =>
  [...store.entries.read(session, { kind: 'tool-result' })].map(({ payload }) => {
    const { output } = payload as { readonly output: JsonObject };
    return output.type === 'text' ? String(output.value) : `!${output.value ?? output.reason}`;
  });
const until = async (isTrue: () => boolean) => await expect.poll(isTrue, { interval: 10 }).toBe(true);

/** Each starts servers: a push has those of what a call and a list can meet. */
const whole = test.runIf(atFullSize);

test('a call reaches the server and gives its text; what the tool reports as an error is a failed call', async () => {
  const calls = [call('echo', { text: 'milk' }), call('fail'), call('refuse'), call('nonsense')];
  await using home = await deckOf(asking(...calls));
  const run = (await home.deck.session('main')).run('Go');
  expect(await run).toMatchObject({ finish: 'stop', text: 'Done.' });
  const [milk, fail, refuse, nonsense] = outputs(home.store);
  expect([milk, fail, refuse]).toEqual([
    'milk',
    '!the notebook is locked',
    "!MCP server 'notes': text is required",
  ]);
  expect(nonsense).toMatch(/^!MCP server 'notes': Failed to parse server response: /);
  const completed = (await eventsOf(run)).flatMap((event) =>
    event.type === 'tool-completed' ? [event.success] : [],
  );
  expect(completed).toEqual([true, false, false, false]);
});

whole(
  'a server that hangs, floods, answers twice, after a cancel or with too much gives results, and the session goes on',
  async () => {
    const calls = [
      call('twice'),
      call('garbage'),
      call('huge', { bytes: 60_000 }),
      call('backwards', { bytes: 60_000 }),
      call('late'),
      call('cancelled'),
      call('echo', { text: 'still here' }),
      call('flood'),
    ];
    await using home = await deckOf(asking(...calls), {
      mcpServers: { notes: { ...server(), timeoutMs: 1_000 } },
      limits: { mcpResultBytes: 50_000 },
    });
    expect(await (await home.deck.session('main')).run('Go')).toMatchObject({
      finish: 'stop',
      text: 'Done.',
    });
    const tooLong = "!MCP server 'notes': its answer has more than 50000 bytes";
    const found = outputs(home.store);
    expect(found.toSpliced(7).toSpliced(5, 1)).toEqual([
      'first',
      'after garbage',
      tooLong,
      tooLong,
      '!The tool took longer than 1000 ms and was abandoned; its outcome is unknown.',
      'still here',
    ]);
    // On a slow machine the client also gives up its question for the version of the protocol, its first request.
    expect(found[5]).toMatch(/^(?:0,)?\d+$/);
    expect(found[7]).toMatch(
      /^!MCP server 'notes': it sent \d+ bytes that answer nothing; whether the call was carried out is unknown$/,
    );
  },
);

test('a server that died starts again with the next call; one that dies again rests', async () => {
  const calls = ['die', 'pid', 'die', 'die', 'pid'].map((tool) => call(tool));
  await using dir = tempDir();
  const starts = dir.file('starts');
  await using home = await deckOf(asking(...calls), {
    mcpServers: { notes: { ...server(), env: { STARTS: starts } } },
  });
  await (await home.deck.session('main')).run('Go');
  const died = "!MCP server 'notes': it ended with exit code 7; whether the call was carried out is unknown";
  const rests =
    "!cannot start MCP server 'notes': it was lost 2 times without an answer: it ended with exit code 7";
  const found = outputs(home.store);
  expect(found.toSpliced(1, 1)).toEqual([died, died, died, rests]);
  const pids = readFileSync(starts, 'utf8').trim().split('\n');
  expect([pids.length, found[1]]).toEqual([3, pids[1]]);
});

/** A server over HTTP in this process, which answers calls with what `faults` has for their tool. */
async function served(
  faults: Readonly<Record<string, (id: number, response: ServerResponse) => void>>,
): Promise<{ readonly url: string } & AsyncDisposable> {
  const json = (response: ServerResponse, body: object) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', ...body }));
  const tools = Object.keys(faults).map((name) => ({ name, inputSchema: { type: 'object' } }));
  const http = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    text(request).then((body) => {
      const { id, method, params } = JSON.parse(body);
      if (id === undefined) response.writeHead(202).end();
      else if (method === 'initialize')
        json(response, {
          id,
          result: {
            protocolVersion: '2025-06-18',
            capabilities: { tools: {} },
            serverInfo: { name: 'notes', version: '1' },
          },
        });
      else if (method === 'tools/list') json(response, { id, result: { tools } });
      else if (method === 'tools/call') faults[params.name]?.(id, response);
      else json(response, { id, error: { code: -32601, message: 'no such method' } });
    });
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address() as { readonly port: number };
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    [Symbol.asyncDispose]: async () => {
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  };
}

test('over HTTP an answer that breaks off, is too large or is no answer is a result, and the session goes on', async () => {
  const events = (response: ServerResponse) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' });
  const event = (id: number, value: string) =>
    `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: value }] } })}\n\n`;
  await using server = await served({
    stream: (id, response) => events(response).end(`: ping\n\n${event(id, 'in a stream')}`),
    twice: (id, response) => events(response).end(event(id, 'first') + event(id, 'second')),
    ends: (_, response) => events(response).end(': ping\n\ndata: {"jsonrpc"'),
    breaks: (_, response) => events(response).write('data: {"json', () => response.destroy()),
    pours: (id, response) => void events(response).write(event(id, 'x'.repeat(30_000))),
    large: (id, response) => void events(response).write(event(id, 'x'.repeat(60_000)).slice(0, 55_000)),
    page: (_, response) => response.setHeader('content-type', 'text/html').end('<h1>Welcome</h1>'),
    fails: (_, response) => response.writeHead(500).end('out of order'),
    moved: (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
  });
  const names = ['stream', 'twice', 'ends', 'breaks', 'pours', 'large', 'page', 'fails', 'moved', 'stream'];
  await using home = await deckOf(asking(...names.map((name) => call(name))), {
    mcpServers: { notes: { url: server.url, headers: { Authorization: 'Bearer 0123456789abcdef' } } },
    limits: { mcpResultBytes: 50_000, maxSteps: 20 },
  });
  expect(await (await home.deck.session('main')).run('Go')).toMatchObject({ finish: 'stop' });
  const at = (what: string) => expect.stringMatching(new RegExp(`^!MCP server 'notes': .*${what}`));
  expect(outputs(home.store)).toEqual([
    'in a stream',
    'first',
    at('it ended its answer before it gave one'),
    at('terminated|closed|aborted|reset'),
    'x'.repeat(30_000),
    at('its answer has more than 50000 bytes'),
    at('content type'),
    at('500'),
    at('redirect'),
    'in a stream',
  ]);
});

whole('an image of a tool reaches the model as a file', async () => {
  await using home = await deckOf(asking(call('image')));
  await (await home.deck.session('main')).run('Go');
  const [result] = [...home.store.entries.read('main', { kind: 'tool-result' })];
  expect(result?.payload).toMatchObject({
    output: {
      type: 'content',
      value: [
        { type: 'text', text: 'a dot' },
        { type: 'file', mediaType: 'image/png' },
      ],
    },
  });
});

whole('a server gets its own variables and arguments, and none of the keys of the deck', async () => {
  const names = ['MODE', 'OPENAI_API_KEY', 'TOKEN'];
  await using home = await deckOf(asking(...names.map((name) => call('env', { name }))), {
    env: { OPENAI_API_KEY: 'sk-of-the-deck-0123', NOTES_TOKEN: 'of-the-notes-4567' },
    mcpServers: { notes: { ...server(), env: { MODE: 'quiet', TOKEN: variable('NOTES_TOKEN') } } },
  });
  await (await home.deck.session('main')).run('Go');
  expect(outputs(home.store)).toEqual(['quiet', 'undefined', '[secret NOTES_TOKEN]']);
});

test('servers start when a session runs that may call a tool of them, are shared, and end with the deck', async () => {
  await using dir = tempDir();
  const starts = dir.file('starts');
  const started = () =>
    existsSync(starts) ? readFileSync(starts, 'utf8').trim().split('\n').map(Number) : [];
  const spec: McpServers = { notes: { ...server(), env: { STARTS: starts } } };
  await using home = await deckOf([{ text: 'Done.' }], {
    mcpServers: spec,
    permissions: 'allow *',
  });
  const denied = ['deny mcp_notes_*', 'deny opaque(*)', 'sandboxed', 'deny *\nallow read(**)'];
  const none: object[] = [
    { tools: [] },
    { tools: ['mcp_notes_echo'], uses: [] },
    ...denied.map((rules) => ({ rules })),
    { tools: ['mcp_notes_echo'], rules: 'deny mcp_notes_echo' },
  ];
  for (const [i, init] of none.entries()) await (await home.deck.session(`none-${i}`, init)).run('Go');
  expect(started()).toEqual([]);
  const some = [
    { rules: 'deny mcp_notes_*\nallow mcp_*_echo' },
    { rules: 'ask *' },
    { tools: ['mcp_notes_echo'] },
  ];
  for (const [i, init] of some.entries()) await (await home.deck.session(`some-${i}`, init)).run('Go');
  await (await home.deck.session('main')).run('Go', { model: home.script(asking(call('child'))) });
  expect(started()).toHaveLength(1);
  const [group = 0] = started();
  const child = Number(outputs(home.store).at(0));
  expect([isAlive(group), isAlive(child)]).toEqual([true, true]);
  await home.deck.close();
  await until(() => !isAlive(group) && !isAlive(child));
});

test('a call that is not allowed does not reach the server', async () => {
  await using home = await deckOf(asking(call('echo', { text: 'a' }), call('pid')), {
    permissions: 'allow *\ndeny mcp_notes_pid',
  });
  await (await home.deck.session('main', { uses: ['mcp_notes_pid', 'mcp_notes_env'] })).run('Go');
  expect(outputs(home.store)).toEqual([
    "!Tool 'mcp_notes_echo' may not be used in this session.",
    "!mcp_notes_pid is not allowed in 'main', by the rule: deny mcp_notes_pid",
  ]);
});

test('what changed in the tools of a server since the last run is noted on the tape', async () => {
  await using home = await deckOf([{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }]);
  await (await home.deck.session('main')).run('Go');
  await (await home.deck.session('main')).run('On');
  const names = () => entryLines(home.store.entries.read('main', { kind: 'event' }));
  expect(names().filter((line) => /mcp|drift/.test(line))).toEqual(['event mcp/notes']);
  await using other = await scriptedDeck([{ text: 'a' }, { text: 'b' }, { text: 'Three.' }], {
    store: home.store,
    mcpServers: notes('changed'),
  });
  const run = (await other.deck.session('main')).run('Again');
  await run;
  const [drift] = [...home.store.entries.read('main', { name: 'tools/drift' })];
  expect(drift?.payload).toMatchObject({ server: 'notes', added: ['added'], removed: [], changed: ['echo'] });
  expect(await eventsOf(run)).toContainEqual({
    type: 'warning',
    message: "the tools of MCP server 'notes' are not those of the last run: added added; changed echo",
  });
});

async function warningsOf(run: Run): Promise<string[]> {
  return (await eventsOf(run)).flatMap((event) => (event.type === 'warning' ? [event.message] : []));
}

whole('a server that hangs is left out with a warning once its time is over', async () => {
  const limits = { mcpStartTimeoutMs: 500 };
  await using home = await deckOf([{ text: 'Done.' }], { mcpServers: { hangs: server('hang') }, limits });
  const run = (await home.deck.session('main')).run('Go');
  expect(await run).toMatchObject({ finish: 'stop', text: 'Done.' });
  expect(await warningsOf(run)).toEqual([
    expect.stringMatching(/^cannot start MCP server 'hangs': .*timed out after 500ms$/),
  ]);
});

test('a server that cannot start, or lies about its tools, is left out with a warning', async () => {
  const mcpServers: McpServers = {
    dies: server('die'),
    lies: server('unlisted'),
    endless: server('pages'),
    absent: { command: join(root, 'no-such-program') },
    unset: { command: 'node', args: [variable('NO_SUCH_VARIABLE')] },
    closed: { url: 'http://127.0.0.1:9/mcp' },
    notes: server('schemas', 'names'),
  };
  // None of them hangs: on a busy machine they may take long to start.
  const limits = { mcpStartTimeoutMs: 60_000 };
  await using home = await deckOf(asking(call('echo', { text: 'well' })), { mcpServers, limits });
  const run = (await home.deck.session('main')).run('Go');
  expect(await run).toMatchObject({ finish: 'stop' });
  expect(outputs(home.store)).toEqual(['well']);
  const warnings = await warningsOf(run);
  const about = (name: string) => warnings.filter((text) => text.includes(`'${name}'`)).join('\n');
  expect(about('dies')).toBe("cannot start MCP server 'dies': it ended with exit code 3: no such notebook");
  expect(about('lies')).toMatch(/^cannot list the tools of MCP server 'lies': Failed to parse/);
  expect(about('endless')).toBe(
    "cannot list the tools of MCP server 'endless': it lists more than 1000 tools",
  );
  expect(about('absent')).toMatch(/^cannot start MCP server 'absent': .*ENOENT/);
  expect(about('unset')).toBe(
    "cannot start MCP server 'unset': the variable NO_SUCH_VARIABLE, which it names, is not set",
  );
  expect(about('closed')).toMatch(/^cannot start MCP server 'closed': .*(?:ECONNREFUSED|bad port)/);
  const left = about('notes').replaceAll("cannot offer a tool of MCP server 'notes': ", '').split('\n');
  expect(left).toEqual([
    `"untyped": its input schema is not of the type 'object'`,
    '"mistyped": its input schema cannot be used: there is no type "text"',
    '"deep": its input schema cannot be used: it is nested deeper than 32',
    expect.stringMatching(/^"wide": its input schema has \d+ bytes, more than 65536$/),
    '"elsewhere": its input schema cannot be used: $ref leads out of the schema',
    '"dangling": its input schema cannot be used: $ref "#/$defs/a" leads to nothing',
    '"hidden": its input schema cannot be used: at $ref "#/x/~1" there is no type "text"',
    '"texts": its input schema is no object',
    '"bare": its input schema is no object',
    '"": its name has other characters than those of names, or more than 128',
    '"echo": it is listed twice',
    String.raw`"\u001b[31mred": its name has other characters than those of names, or more than 128`,
    '"__proto__": its name is that of no field',
    '"abyss": its input schema cannot be used: a list is no schema',
    expect.stringMatching(/^"bottomless": its input schema /),
  ]);
});

whole('for one server more than may run, the one that was idle longest ends', async () => {
  await using dir = tempDir();
  const starts = dir.file('starts');
  const env = { STARTS: starts };
  const mcpServers: McpServers = { notes: { ...server(), env }, more: { ...server(), env } };
  await using home = await deckOf([{ text: 'Done.' }], { mcpServers, limits: { concurrentMcpServers: 1 } });
  const both = (await home.deck.session('both')).run('Go');
  await both;
  expect(await eventsOf(both)).toContainEqual({
    type: 'warning',
    message: "cannot start MCP server 'more': 1 run already, which is the limit",
  });
  await (await home.deck.session('one', { tools: ['mcp_more_echo'] })).run('Go');
  const pids = readFileSync(starts, 'utf8').trim().split('\n').map(Number);
  expect(pids).toHaveLength(2);
  await until(() => !isAlive(pids[0] ?? 0));
  expect(isAlive(pids[1] ?? 0)).toBe(true);
});

whole('the status of a session says which servers its run uses', async () => {
  await using home = await deckOf(asking(call('hang')), {
    mcpServers: { ...notes(), broken: { command: join(root, 'no-such-program') } },
  });
  const main = await home.deck.session('main');
  const run = main.run('Go');
  for await (const event of run) if (event.type === 'tool-started') break;
  expect(await main.status()).toMatchObject({ state: 'busy', servers: ['notes'] });
  run.abort();
  await run;
  expect(await main.status()).not.toHaveProperty('servers');
});

whole(
  'children use the servers of their parent; a deck that closes while a server starts does not wait for it',
  async () => {
    await using dir = tempDir();
    const starts = dir.file('starts');
    await using home = await deckOf(
      [{ toolCalls: [call('echo', { text: 'of the child' })], when: { text: 'Look' } }, { text: 'Done.' }],
      { mcpServers: { notes: { ...server(), env: { STARTS: starts } } } },
    );
    const main = await home.deck.session('main');
    await main.run('Go');
    const [child] = await main.delegate({ task: 'Look', tools: ['mcp_notes_echo'] });
    expect(outputs(home.store, child?.session)).toEqual(['of the child']);
    await expect(main.fork({ tools: ['mcp_other_echo'] })).rejects.toThrow(
      "cannot fork with tool 'mcp_other_echo': the tools are mcp_notes_…",
    );
    expect(readFileSync(starts, 'utf8').trim().split('\n')).toHaveLength(1);
    await using slow = await deckOf([{ text: 'Done.' }], { mcpServers: notes('hang') });
    const run = (await slow.deck.session('main')).run('Go');
    await until(() => run.id !== '');
    const before = performance.now();
    await slow.deck.close();
    expect((await run).finish).toBe('aborted');
    expect(performance.now() - before).toBeLessThan(20_000);
  },
);

test.each<[McpServers | object, string]>([
  [{ 'a b': { command: 'x' } }, 'mcpServers.a b must have a name'],
  [{ a: { command: 'x' }, a_b: { command: 'x' } }, 'mcpServers.a_b must have another name'],
  [{ a: {} }, 'mcpServers.a must have a command or a url'],
  [{ a: { command: 'x', url: 'http://x' } }, 'mcpServers.a must have a command or a url'],
  [{ a: { command: 'x', headers: {} } }, 'mcpServers.a has an unknown field'],
  [{ a: { command: 'x', args: 'y' } }, 'mcpServers.a.args must be a list of texts'],
  [{ a: { command: 'x', env: { N: 1 } } }, 'mcpServers.a.env.N must be a text'],
  [{ a: { url: 'file:///etc' } }, 'mcpServers.a.url must begin with http:// or https://'],
  [{ a: { command: 'x', timeoutMs: 0 } }, 'mcpServers.a.timeoutMs must be a whole number from 1'],
])('servers that cannot be are refused: %j', async (mcpServers, why) => {
  await expect(deckOf([], { mcpServers: mcpServers as McpServers })).rejects.toThrow(why);
});
