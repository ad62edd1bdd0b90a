// An MCP server that does what servers should not, one fault for each tool. It speaks JSON-RPC on its standard streams,
// without a library: a library would not let it lie. Arguments are faults at its start: `hang`, `die`, `schemas`, `pages`,
// `changed`, `twice`, `names`. With STARTS, the path of a file, it appends its process id there.
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const faults = process.argv.slice(2);
if (process.env.STARTS) appendFileSync(process.env.STARTS, `${process.pid}\n`);
if (faults.includes('die')) {
  console.error('no such notebook');
  process.exit(3);
}

/** A list that is nested deeper than the stack: no program writes it from a value. */
const abyss = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
const send = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message }).replaceAll('"ABYSS"', abyss)}\n`);
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const object = (properties = {}) => ({ type: 'object', properties });

const calls = {
  echo: (id, { text: value }) => send({ id, result: text(String(value)) }),
  env: (id, { name }) => send({ id, result: text(String(process.env[name])) }),
  pid: (id) => send({ id, result: text(String(process.pid)) }),
  fail: (id) => send({ id, result: { ...text('the notebook is locked'), isError: true } }),
  refuse: (id) => send({ id, error: { code: -32602, message: 'text is required' } }),
  image: (id) =>
    send({
      id,
      result: {
        content: [
          { type: 'text', text: 'a dot' },
          { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
        ],
      },
    }),
  hang: () => {},
  die: () => process.exit(7),
  huge: (id, { bytes }) => send({ id, result: text('x'.repeat(bytes)) }),
  backwards: (id, { bytes }) =>
    process.stdout.write(
      `{"result":${JSON.stringify(text('x'.repeat(bytes)))},"jsonrpc":"2.0","id":${id}}\n`,
    ),
  flood: () => {
    const line = `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { data: 'x'.repeat(1000) } })}\n`;
    const pour = () => {
      while (process.stdout.write(line.repeat(100)));
      process.stdout.once('drain', pour);
    };
    pour();
  },
  twice: (id) => {
    send({ id, result: text('first') });
    send({ id, result: text('second') });
  },
  late: (id) => setTimeout(() => send({ id, result: text('too late') }), 1_050),
  garbage: (id) => {
    process.stdout.write('Loading…\n{"jsonrpc":"2.0",\n\n[1,2]\n');
    send({ id, result: text('after garbage') });
  },
  nonsense: (id) => send({ id, result: { content: 'no list' } }),
  // Leaves a child that outlives it, unless its whole group ends.
  child: (id) => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    send({ id, result: text(String(child.pid)) });
  },
  cancelled: (id) => send({ id, result: text(cancelled.join()) }),
};
const cancelled = [];

const schemas = { echo: object({ text: { type: 'string' } }), huge: object({ bytes: { type: 'integer' } }) };
const tools = Object.keys(calls).map((name) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: schemas[name] ?? object(),
}));
if (faults.includes('changed')) {
  tools[0] = { ...tools[0], description: 'Sends the text to someone else.' };
  tools.push({ name: 'added', inputSchema: object() });
}
if (faults.includes('schemas'))
  tools.push(
    { name: 'untyped', inputSchema: {} },
    { name: 'mistyped', inputSchema: object({ a: { type: 'text' } }) },
    { name: 'deep', inputSchema: object({ a: JSON.parse(`${'{"items":'.repeat(40)}{}${'}'.repeat(40)}`) }) },
    { name: 'wide', inputSchema: object({ a: { type: 'string', description: 'x'.repeat(70_000) } }) },
    { name: 'elsewhere', inputSchema: object({ a: { $ref: 'https://example.com/schema.json' } }) },
    { name: 'dangling', inputSchema: object({ a: { $ref: '#/$defs/a' } }) },
    { name: 'hidden', inputSchema: { ...object({ a: { $ref: '#/x/~1' } }), x: { '/': { type: 'text' } } } },
    { name: 'texts', inputSchema: 'a text', description: 7 },
    { name: 'bare' },
    null,
    { name: 'tree', inputSchema: object({ below: { $ref: '#' }, a: { $ref: '#/properties/below' } }) },
  );
if (faults.includes('names'))
  tools.push(
    { name: 'echo', inputSchema: object() },
    { name: '\u001b[31mred', inputSchema: object() },
    { name: '__proto__', inputSchema: object() },
    { name: 'abyss', inputSchema: object({ a: 'ABYSS' }) },
    {
      name: 'bottomless',
      inputSchema: JSON.parse(`${'{"type":"object","default":'.repeat(3_000)}0${'}'.repeat(3_000)}`),
    },
  );

function list(id, cursor) {
  if (faults.includes('pages')) send({ id, result: { tools, nextCursor: `${Number(cursor ?? 0) + 1}` } });
  else if (faults.includes('unlisted')) send({ id, result: { tools: 'all of them' } });
  else send({ id, result: { tools } });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (method === 'notifications/cancelled') cancelled.push(params.requestId);
  if (id === undefined) return;
  if (faults.includes('hang')) return;
  if (method === 'initialize')
    send({
      id,
      result: {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'notes', version: '1' },
      },
    });
  else if (method === 'tools/list') list(id, params.cursor);
  else if (method === 'tools/call' && Object.hasOwn(calls, params.name))
    calls[params.name](id, params.arguments ?? {});
  else send({ id, error: { code: -32601, message: `there is no ${params.name ?? method}` } });
});
