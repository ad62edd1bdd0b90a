import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Json, JsonObject } from '@tapedeck/tape';
import { installed } from './installed.ts';
import { anthropic } from './provider/anthropic.ts';
import { type Answer, apiKey, type ChatRequest } from './provider/protocol.ts';

/** The version of Claude Code that `test/programs` pins. */
export const claudeCodeVersion = '2.1.330';

/** The program of Claude Code for this machine. */
export async function claudeCodeProgram(): Promise<string> {
  const modules = await installed('claude-code');
  const [program] = globSync('@anthropic-ai/claude-code-*/claude', { cwd: modules });
  if (program === undefined) throw new Error('Claude Code has no program for this machine');
  return join(modules, program);
}

/** A model that Claude Code calls. */
export interface ScriptedModel extends AsyncDisposable {
  readonly url: string;
  /** What it was asked, in order. */
  readonly requests: readonly ChatRequest[];
  /** What a strict server would refuse; nothing when all requests are valid. */
  readonly faults: readonly string[];
}

/** Starts a server of Anthropic's protocol that answers what `answer` says. */
export async function startScriptedModel(
  answer: (request: ChatRequest, index: number) => Answer | Promise<Answer>,
): Promise<ScriptedModel> {
  const requests: ChatRequest[] = [];
  const faults: string[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.method !== 'POST' || request.url?.split('?')[0] !== anthropic.path) {
      response.writeHead(request.method === 'HEAD' ? 200 : 404).end();
      return;
    }
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as ChatRequest;
    const fault = anthropic.fault({ ...body, messages: withoutSystem(body.messages) });
    if (fault !== undefined) faults.push(fault.message);
    requests.push(body);
    const said = await answer(body, requests.length - 1);
    const events = [...anthropic.begin(body, said), ...anthropic.end(body, said)];
    const isStream = body.stream === true;
    response.writeHead(200, {
      'content-type': isStream ? 'text/event-stream' : 'application/json',
      'request-id': `req_${requests.length}`,
    });
    response.end(isStream ? events.join('') : JSON.stringify(wholeOf(events)));
  };
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    faults,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Claude Code says what changed on the way in messages of the system, which its models take between the others. */
function withoutSystem(messages: Json | undefined): Json {
  if (!Array.isArray(messages)) return messages ?? null;
  return messages.filter((message) => (message as JsonObject).role !== 'system');
}

/** The message that a stream of events says. */
function wholeOf(events: readonly string[]): JsonObject {
  let message: JsonObject = {};
  const content: { [field: string]: Json }[] = [];
  for (const text of events) {
    const event = JSON.parse(text.split('data: ')[1] ?? '{}');
    if (event.type === 'message_start') message = event.message;
    if (event.type === 'content_block_start') content.push({ ...event.content_block });
    const last = content.at(-1);
    if (event.type === 'content_block_delta' && last !== undefined) {
      const { text: more = '', partial_json: json = '' } = event.delta;
      if (more !== '') last.text = `${last.text}${more}`;
      if (json !== '') last.json = `${last.json ?? ''}${json}`;
    }
    if (event.type === 'message_delta') message = { ...message, ...event.delta };
  }
  const blocks = content.map(({ json, ...block }) =>
    json === undefined ? block : { ...block, input: JSON.parse(String(json)) },
  );
  return { ...message, content: blocks };
}

/** Where one Claude Code works: nothing that it reads or writes lies elsewhere. */
export interface ClaudeCodePlace {
  readonly program: string;
  readonly config: string;
  readonly project: string;
  readonly url: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** The environment of a run of the program. */
export function claudeCodeEnv({
  config,
  url,
}: Pick<ClaudeCodePlace, 'config' | 'url'>): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: config,
    CLAUDE_CONFIG_DIR: config,
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: apiKey,
    // It may run as root, asks no other server, and prints what can be read.
    IS_SANDBOX: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    NO_COLOR: '1',
  };
}

/** What a run of the program printed. */
export interface ClaudeCodeRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs Claude Code without a terminal; `input` is its standard input. */
export function runClaudeCode(
  { program, config, project, url, env }: ClaudeCodePlace,
  args: readonly string[],
  input: string | ((write: (text: string) => void, end: () => void) => void) = '',
): Promise<ClaudeCodeRun> {
  const child = spawn(program, args, {
    cwd: project,
    env: { ...claudeCodeEnv({ config, url }), ...env },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (text: Buffer) => {
    stdout += text;
  });
  child.stderr.on('data', (text: Buffer) => {
    stderr += text;
  });
  if (typeof input === 'string') child.stdin.end(input);
  else
    input(
      (text) => child.stdin.write(text),
      () => child.stdin.end(),
    );
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, stdout, stderr }));
  });
}
