import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { compileCache } from '../support/compile-cache.ts';
import { skipsGit } from '../support/repository.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const examples = fileURLToPath(new URL('../../examples', import.meta.url));

function start(name: string, env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [join(examples, name)], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCache, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return { child, ended: once(child, 'close') };
}

async function outputOf(name: string): Promise<string> {
  const { child, ended } = start(name);
  const said = await text(child.stdout);
  expect((await ended)[0]).toBe(0);
  return said;
}

/** The output of each example, from its first line to its last. */
const expected: Readonly<Record<string, readonly string[]>> = {
  'orchestrator.ts': [
    'Five checks, side by side.',
    'changelog completed: It lists every change.',
    "tests halted: Halted: the steps of 'tests' are used up: 1 of 1",
    'links failed: Error: the provider is down for maintenance',
    'the orchestrator was ended by SIGKILL',
    'audit: speed children-not-terminal',
    'audit: speed orphaned-call',
    'audit: candidate children-not-terminal',
    'recovered speed, candidate waits',
    'approving publish {"version":"2.4.0-rc.1"}',
    'The candidate is out.',
    'Not yet: run all tests, and check the links.',
    '○  release active',
    '├─●  candidate [subagent] merged 4-11 → release@12, from release 1-3',
    '├─●  speed [subagent] merged 4-8 → release@10, from release 1-3',
    '├─●  links [subagent] merged 4-6 → release@8, failed, from release 1-3',
    '├─●  tests [subagent] merged 4-8 → release@6, halted, from release 1-3',
    '╰─●  changelog [subagent] merged 4-6 → release@4, from release 1-3',
    '487 tokens in 8 calls',
    '0 findings, 0 problems',
  ],
  'library.ts': [
    '[forecast → {"city":"Rome","sky":"clear","celsius":21}]',
    'No: the sky over Rome is clear.',
    'stop after 2 steps, 190 tokens in and 21 out',
    '1 anchor session/start',
    '2 message',
    '3 message',
    '4 tool-result',
    '5 message',
  ],
  'approval.ts': [
    'The run ended: waiting',
    'deploy {"version":"2.4.0"} waits for approval',
    '2.4.0 is live.',
  ],
  'resume.ts': [
    'first start',
    '(sending the invoice of 7, and then the power fails)',
    'ended by SIGKILL',
    'second start',
    'user [{"type":"text","text":"Send the invoice of order 7."}]',
    'assistant [{"type":"tool-call","toolCallId":"call-1","toolName":"send_invoice","input":{"order":"7"}}]',
    'tool [{"type":"tool-result","toolCallId":"call-1","toolName":"send_invoice","output":{"type":"error-text","value":"Outcome unknown: aborted by host restart."}}]',
    'assistant [{"type":"tool-call","toolCallId":"call-2","toolName":"look_up","input":{"order":"7"}}]',
    'tool [{"type":"tool-result","toolCallId":"call-2","toolName":"look_up","output":{"type":"text","value":"the invoice of 7 was sent"}}]',
    'assistant [{"type":"text","text":"It was cut off, but the invoice of order 7 was sent."}]',
    'It was cut off, but the invoice of order 7 was sent.',
    'ended with 0',
  ],
  'own-loop.ts': [
    'first start',
    '(booking at Rosa, and then the power fails)',
    'ended by SIGKILL',
    'second start',
    'It was cut off, but a table is booked for eight.',
    '1 anchor session/start',
    '2 message',
    '3 message',
    '4 event run/waiting',
    '5 event run/begun',
    '6 tool-result',
    '7 message',
    '8 event run/waiting',
    '9 event run/begun',
    '10 tool-result',
    '11 message',
    'other: Gino is closed today.',
    '1 call, 30 tokens in and 5 out',
    'ended with 0',
  ],
  'snapshots.ts': [
    "after the first message: draft.md 'It works.'",
    "after the second: draft.md 'It works, and this is why.', summary.md 'It works.'",
    "rewound: draft.md 'It works.'",
    "said otherwise: draft.md 'It works, and this is how.'",
  ],
};

const needsGit = ['snapshots.ts'];

/** On a push those that show most; each one starts a process that loads everything. */
const played = Object.entries(expected).filter(([name]) =>
  sized(['orchestrator.ts', 'library.ts'].includes(name), true, true),
);

for (const [name, lines] of played)
  test.skipIf(needsGit.includes(name) && skipsGit(name))(`${name} does what it says`, async () => {
    expect((await outputOf(name)).trimEnd().split('\n')).toEqual(lines);
  });

test('the tests run every example', () => {
  const files = readdirSync(examples).filter((file) => file.endsWith('.ts'));
  expect(files.sort()).toEqual([...Object.keys(expected), 'http-stream.ts'].sort());
});

/** The texts of a response of server-sent events, and what it ended with. */
function readEvents(body: string): { readonly text: string; readonly last: string | undefined } {
  const events = body
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)) as { type: string; delta?: string });
  return { text: events.map(({ delta = '' }) => delta).join(''), last: events.at(-1)?.type };
}

test('http-stream.ts: a client that leaves finds its run again, from the first chunk', async () => {
  using home = tempDir();
  const { child, ended } = start('http-stream.ts', { PORT: '0', TAPE_HOME: home.path });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const url = line.toString('utf8').trim();
  const post = (id: string, text: string, signal?: AbortSignal) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'main', message: { id, role: 'user', parts: [{ type: 'text', text }] } }),
      ...(signal !== undefined && { signal }),
    });
  const leave = new AbortController();
  const first = await post('m1', 'Hello', leave.signal);
  expect(first.headers.get('content-type')).toContain('text/event-stream');
  leave.abort();
  const again = await fetch(`${url}/main/stream`);
  expect(readEvents(await again.text())).toEqual({ text: 'Hello. What shall we do?', last: 'finish' });
  expect((await fetch(`${url}/main/stream`)).status).toBe(204);
  const second = await post('m2', 'This');
  expect(readEvents(await second.text()).text).toBe('Then let us begin.');
  child.kill('SIGTERM');
  expect((await ended)[0]).toBe(0);
});
