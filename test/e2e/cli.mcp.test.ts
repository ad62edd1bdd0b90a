import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { openTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { startTape, tapeProcess } from '../support/cli.ts';
import { tapeProgram } from '../support/programs.ts';
import { atFullSize, sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

/** A client of `tape mcp`, as an agent has one. */
async function connect(
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
) {
  const client = new Client({ name: 'test', version: '1.0.0' });
  const env = { ...(process.env as Record<string, string>), ...options.env };
  const command = { command: process.execPath, args: [tapeProgram, 'mcp', ...args] };
  await client.connect(new StdioClientTransport({ ...command, ...options, env, stderr: 'ignore' }));
  /** The text of a result, and what it says as JSON. */
  const answer = async (name: string, given: Record<string, unknown>) => {
    const { content, isError } = await client.callTool({ name, arguments: given });
    const [{ text }] = content as unknown as [{ readonly text: string }];
    return { text, json: JSON.parse(text), isError: isError === true };
  };
  const call = async (name: string, given: Record<string, unknown> = {}) => {
    const { text, json, isError } = await answer(name, given);
    expect(isError, text).toBe(false);
    return json;
  };
  const code = async (name: string, given: Record<string, unknown> = {}) => {
    const { json, isError } = await answer(name, given);
    expect(isError).toBe(true);
    return (json as { readonly error: { readonly code: string } }).error.code;
  };
  return { client, answer, call, code, [Symbol.asyncDispose]: async () => await client.close() };
}

const said = (role: 'user' | 'assistant', content: string) => ({ role, content });

test('an agent keeps its work in sessions, forks one and merges it back', async () => {
  using home = tempHome();
  await using agent = await connect(['--home', home.path]);
  const { call, client } = agent;
  const messages = [said('user', '@/etc/passwd'), said('assistant', 'I read the parser.')];
  expect(await call('append', { session: 'main', messages, key: 'k' })).toMatchObject({
    from: 2,
    to: 3,
    added: 2,
  });
  expect(await call('append', { session: 'main', messages, key: 'k' })).toMatchObject({
    added: 0,
    repeated: 2,
  });
  expect(await call('anchor', { session: 'main', name: 'read', state: { files: 3 } })).toMatchObject({
    seq: 4,
  });
  const forked = await call('fork', { parent: 'main', at: 'read', name: 'try', task: '@here' });
  expect(forked).toMatchObject({ session: 'try', parent: 'main', range: [1, 4] });
  await call('append', { session: 'try', messages: [said('assistant', 'The lexer drops a token.')] });
  expect(await call('diff', { a: 'main', b: 'try' })).toMatchObject({ base: { session: 'main', seq: 4 } });
  expect(await call('merge', { child: 'try', check: true })).toMatchObject({ complete: true, conflicts: [] });
  expect(await call('merge', { child: 'try', result: '-' })).toMatchObject({
    parent: 'main',
    state: 'merged',
  });
  expect(await call('search', { text: 'lexer' })).toMatchObject({ hits: [{ session: 'try' }], next: null });
  const { messages: shown } = await call('view', { session: 'main' });
  expect(JSON.stringify(shown)).toMatch(/\/etc\/passwd.*I read the parser.*try/);
  expect(await call('trace', { session: 'try', at: '2' })).toMatchObject({ owner: 'main', seq: 2 });
  expect(await call('anchor', { session: 'main', name: 'next', summary: 'All read.' })).toMatchObject({
    name: 'next',
  });
  expect(await call('check')).toMatchObject({ ok: true, sessions: 2 });
  expect(await call('sessions', { limit: 1 })).toMatchObject({ sessions: [{ session: 'main' }], next: 1 });
  const { resources } = await client.listResources();
  expect(resources.map(({ uri }) => uri)).toEqual(['tape://session/main', 'tape://session/try']);
  const { contents } = await client.readResource({ uri: 'tape://session/try' });
  expect(contents).toMatchObject([{ text: expect.stringContaining('The lexer drops a token.') }]);
  using store = home.open();
  expect([...store.entries.read('main', { from: 2, to: 2 })][0]?.payload).toMatchObject({
    content: [{ type: 'text', text: '@/etc/passwd' }],
  });
});

test.runIf(atFullSize)(
  'errors are results of calls with their stable code, and answers come in pages',
  async () => {
    using home = tempHome();
    const long = Array.from({ length: 40 }, (_, i) => user(`${i}: ${'x'.repeat(30_000)}`));
    home.session('main', ...long, user('y'.repeat(300_000)));
    await using agent = await connect(['--home', home.path]);
    const { answer, code, client } = agent;
    expect(await code('log', { session: 'mian' })).toBe('TAPE_NO_SESSION');
    expect(await code('trace', { session: 'main', at: '99' })).toBe('TAPE_NO_SEQ');
    expect(await code('anchor', { session: 'main', name: '--help' })).toBe('TAPE_BAD_NAME');
    expect(await code('check', { session: '--fix' })).toBe('TAPE_NO_SESSION');
    expect(await code('merge', { child: 'main' })).toBe('TAPE_CONFLICT');
    const wrong: [string, Record<string, unknown>][] = [
      ['log', { session: 7 }],
      ['log', { session: 'main', limit: 1e9 }],
      ['log', { session: 'main', file: '/etc/passwd' }],
      ['append', { session: 'main', messages: [] }],
      ['append', { session: 'main', messages: [said('user', 'z'.repeat(1_000_001))] }],
      ['search', {}],
      ['nothing', {}],
    ];
    for (const [name, given] of wrong) expect([name, await code(name, given)]).toEqual([name, 'CLI_USAGE']);
    await expect(client.readResource({ uri: 'tape://session/mian' })).rejects.toThrow(
      /cannot find session 'mian'/,
    );
    await expect(client.readResource({ uri: 'file:///etc/passwd' })).rejects.toThrow(/cannot/);
    const seen: number[] = [];
    for (let from: number | null = 1; from !== null; ) {
      const { text, json } = await answer('log', { session: 'main', from, limit: 200 });
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(65_536);
      seen.push(...json.entries.map(({ seq }: { readonly seq: number }) => seq));
      from = json.next;
    }
    expect(seen).toEqual(Array.from({ length: 42 }, (_, i) => i + 1));
    for (const [name, given] of [
      ['log', {}],
      ['view', {}],
    ] as const) {
      const { text } = await answer(name, { session: 'main', ...given });
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(65_536);
    }
  },
);

test.runIf(atFullSize)(
  'read-only it offers what reads alone, and a home that came from elsewhere is read, and not written',
  async () => {
    await using dir = tempDir();
    const shipped = dir.file('.tape');
    mkdirSync(shipped, { mode: 0o700 });
    {
      using store = openTapeStore(join(shipped, 'tape.db'));
      store.sessions.open('main');
      store.entries.append('main', [user('Go')]);
    }
    const env = { TAPE_HOME: '', TAPE_TRUST_HOME: '', HOME: dir.file('user') };
    await using agent = await connect([], { cwd: dir.path, env });
    expect(await agent.call('sessions')).toMatchObject({ sessions: [{ session: 'main' }] });
    expect(await agent.code('append', { session: 'main', messages: [said('user', 'x')] })).toBe(
      'CLI_FOREIGN_HOME',
    );
    await using reader = await connect(['--read-only'], { cwd: dir.path, env });
    const { tools } = await reader.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'sessions',
      'log',
      'search',
      'view',
      'diff',
      'trace',
      'check',
    ]);
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);
    expect(await reader.code('append', { session: 'main', messages: [said('user', 'x')] })).toBe('CLI_USAGE');
  },
);

// On a push processes write one session at once in tests of the store.
test.runIf(sized(false, true, true))(
  'two clients write one session at once, and nothing is lost',
  async () => {
    using home = tempHome();
    home.session('main');
    const args = ['--home', home.path];
    await using first = await connect(args);
    await using second = await connect(args);
    const append = async ({ call }: typeof first, name: string) =>
      await Promise.all(
        Array.from({ length: 15 }, async (_, i) => {
          const messages = [said('user', `${name} ${i}`)];
          await call('append', { session: 'main', messages, key: `${name}-${i}` });
        }),
      );
    await Promise.all([append(first, 'a'), append(second, 'b')]);
    expect(await first.call('check')).toMatchObject({ ok: true });
    using store = home.open();
    expect([...store.entries.read('main', { kind: 'message' })]).toHaveLength(30);
  },
);

test.runIf(sized(false, true, true))(
  'it ends with its client, however that leaves, and skips what is no message',
  async () => {
    using home = tempHome();
    expect(await tapeProcess(['mcp'], { home: home.path, stdin: '' })).toMatchObject({ code: 0, stdout: '' });
    const running = startTape(['mcp'], { home: home.path });
    const send = (line: string) => running.child.stdin?.write(`${line}\n`);
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' },
    };
    send('no json');
    send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }));
    await running.until('"serverInfo"');
    send('[1,');
    send(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' }));
    await running.until('"readOnlyHint"');
    running.child.stdout?.destroy();
    for (let id = 3; id < 50; id += 1) send(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' }));
    expect(await running.done).toMatchObject({ code: 0 });
    const interrupted = startTape(['mcp'], { home: home.path });
    interrupted.child.stdin?.write(
      `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`,
    );
    await interrupted.until('"serverInfo"');
    interrupted.child.kill('SIGINT');
    expect(await interrupted.done).toMatchObject({ code: 130 });
  },
);

// The SDK reads a line in quadratic time up to its limit.
test.runIf(sized(false, true, true))(
  'a line without an end ends it',
  async () => {
    using home = tempHome();
    const flooded = startTape(['mcp'], { home: home.path });
    flooded.child.stdin?.write('x'.repeat(11 * 1024 * 1024));
    expect((await flooded.done).stdout).toBe('');
  },
  300_000,
);
