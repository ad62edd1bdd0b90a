import { delegateTool } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { scriptedDeck } from '../support/scripted.ts';

const ran: string[] = [];
const named = (name: string) =>
  tool({
    inputSchema: z.object({}),
    execute: () => {
      ran.push(name);
      return 'done';
    },
  });
const tools = { read: named('read'), write: named('write'), delegate: delegateTool() };
const call = (name: string, input: unknown = {}): ScriptAnswer => ({ toolCalls: [{ name, input }] });

/** The results of the calls of a session, as texts. */
async function resultsOf(entries: AsyncIterable<{ kind: string; payload: unknown }>): Promise<string[]> {
  const results: string[] = [];
  for await (const { kind, payload } of entries)
    if (kind === 'tool-result' && isObject(payload as never))
      results.push(JSON.stringify((payload as { output: unknown }).output));
  return results;
}

test('a coordinator hands on tools that its own model may not call', async () => {
  ran.length = 0;
  await using s = await scriptedDeck(
    [
      { ...call('write'), when: { text: 'Fix the build' } },
      { text: 'Fixed.', when: { text: 'Fix the build' } },
      call('write'),
      call('delegate', { tasks: [{ task: 'Fix the build' }], inherit: 'nothing' }),
      { text: 'It is fixed.' },
    ],
    { tools },
  );
  const main = await s.deck.session('main', {
    tools: ['read', 'write', 'delegate'],
    uses: ['read', 'delegate'],
  });
  expect(await main.run('Have the build fixed')).toMatchObject({ text: 'It is fixed.' });
  const [refused, delegated] = await resultsOf(main.entries());
  expect(refused).toContain("'write' may not be used in this session");
  expect(delegated).toContain('Fixed.');
  // It ran once, in the child, which does not inherit what its parent uses.
  expect(ran).toEqual(['write']);
});

test('a fork takes no tool that its parent cannot hand on, and uses none that it has not', async () => {
  await using s = await scriptedDeck([{ text: 'Hi.' }], { tools });
  const main = await s.deck.session('main', { tools: ['read', 'delegate'] });
  await expect(main.fork({ tools: ['write'] })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: "cannot fork 'main' with tool 'write': the tools that it may have are read, delegate",
  });
  await expect(main.fork({ tools: ['read'], uses: ['delegate'] })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
  await expect(main.branch('head', { uses: ['write'] })).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
  await expect(main.delegate({ task: 'x', tools: ['write'] })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
  await expect(s.deck.session('other', { tools: ['read'], uses: ['write'] })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
  expect((await s.deck.sessions()).map(({ session }) => session)).toEqual(['main']);
  // What a session may hand on narrows at each fork.
  const child = await main.fork({ tools: ['read'] });
  await expect(child.fork({ tools: ['delegate'] })).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
});

test('a branch uses what its parent uses', async () => {
  ran.length = 0;
  await using s = await scriptedDeck(
    [
      { text: 'Hi.', when: { text: 'Hello' } },
      { ...call('write'), when: { text: 'Write it' } },
      { text: 'No.' },
    ],
    { tools },
  );
  const main = await s.deck.session('main', { uses: ['read'] });
  await main.run('Hello');
  const branch = await main.branch();
  await branch.run('Write it');
  expect((await resultsOf(branch.entries()))[0]).toContain('may not be used');
  expect(ran).toEqual([]);
});
