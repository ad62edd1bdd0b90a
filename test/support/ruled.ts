import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { type DeckConfig, type DeckTools, delegateTool, sendMessageTool } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { scriptedDeck } from './scripted.ts';
import { tempDir } from './temp-dir.ts';

/** A deck in a new directory, with a session `main`, and tools that write files and note the commands they are given. */
export async function desk(answers: readonly ScriptAnswer[], config: DeckConfig = {}) {
  const dir = tempDir();
  onTestFinished(() => dir[Symbol.dispose]());
  const cwd = join(realpathSync(dir.path), 'work');
  mkdirSync(cwd, { recursive: true });
  const ran: string[] = [];
  const tools: DeckTools = {
    write_file: {
      ...tool({
        inputSchema: z.object({ path: z.string(), text: z.string().default('') }),
        execute: ({ path, text }) => {
          writeFileSync(isAbsolute(path) ? path : join(cwd, path), text);
          return 'written';
        },
      }),
      paths: { write: ['path'] },
    },
    run_command: {
      ...tool({
        inputSchema: z.object({ command: z.string() }),
        execute: ({ command }) => {
          ran.push(command);
          return `ran ${command}`;
        },
      }),
      command: 'command',
    },
    mystery: tool({ inputSchema: z.object({}), execute: () => ran.push('mystery') }),
    pay: tool({
      inputSchema: z.object({}),
      needsApproval: true,
      execute: () => ran.push('pay'),
    }),
    send: sendMessageTool(),
    delegate: delegateTool(),
  };
  const home = await scriptedDeck(answers, { tools, cwd, ...config });
  const main = await home.deck.session('main');
  const events = (name: string, session = 'main') =>
    [...home.store.entries.read(session, { name })].map(({ payload }) => payload);
  const outputs = (session = 'main') =>
    [...home.store.entries.read(session, { kind: 'tool-result', own: true })].map(({ payload }) =>
      isObject(payload) && isObject(payload.output)
        ? (payload.output.reason ?? payload.output.value)
        : payload,
    );
  return { ...home, main, cwd, tools, ran, events, outputs };
}

/** An answer with one call of a tool. */
export const call = (name: string, input: object = {}): ScriptAnswer => ({
  toolCalls: [{ id: `${name}-1`, name, input }],
});
/** An answer with one command. */
export const run = (command: string, id = 'c1'): ScriptAnswer => ({
  toolCalls: [{ id, name: 'run_command', input: { command } }],
});
export const done: ScriptAnswer = { text: 'Done.' };

/** Messages of agents as their tool sends them. */
export const byAgent = (id: string) => ({ source: 'agent', meta: { by: { agent: 'child', id } } });
