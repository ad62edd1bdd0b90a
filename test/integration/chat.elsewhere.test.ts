import { type ChildProgress, delegateTool, openDeck } from '@tapedeck/runtime';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { serveChats } from '../support/chat.ts';
import { startProvider } from '../support/provider.ts';
import { tempHome } from '../support/temp-home.ts';

test('a page sees how children of a run in another process do, and what they ask, while it goes on', async () => {
  const asked = Promise.withResolvers<void>();
  await using provider = await startProvider(async (request) => {
    const text = JSON.stringify(request.messages.slice(-2));
    if (text.includes('Check the docs')) return { calls: [{ id: 'p1', name: 'pay', arguments: {} }] };
    if (text.includes('Check the tests')) {
      await asked.promise;
      return { text: ['The tests ', 'pass.'], pauseMs: 800 };
    }
    const tasks = [{ task: 'Check the docs.' }, { task: 'Check the tests.' }];
    return {
      text: 'Look.',
      calls: [{ id: 'd1', name: 'delegate', arguments: { tasks, inherit: 'nothing' } }],
    };
  });
  using home = tempHome();
  const pay = tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'paid' });
  const { env } = provider;
  const options = { home: home.path, model: 'openai-compatible/test-model', env };
  await using writer = await openDeck({ ...options, tools: { delegate: delegateTool(), pay } });
  await using reader = await openDeck(options);
  await using server = await serveChats(reader);
  const main = await writer.session('main');
  const run = main.run('Go');
  await expect.poll(async () => (await writer.sessions({ all: true })).length).toBe(3);
  const progress: ChildProgress[] = [];
  const chat = server.chat('main', {
    messages: (await main.uiMessages()).slice(0, 1),
    onData: (part) => {
      if (part.type === 'data-child') progress.push(part.data as ChildProgress);
    },
  });
  const resuming = chat.resumeStream();
  await expect.poll(() => JSON.stringify(chat.lastMessage)).toContain('approval-requested');
  expect((await main.status()).state).toBe('busy');
  asked.resolve();
  await resuming;
  expect(await run).toMatchObject({ finish: 'waiting' });
  const ofTests = progress.filter(({ task }) => task === 'Check the tests.');
  expect(ofTests).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ state: 'running', phase: 'answering', text: 'The tests ' }),
      expect.objectContaining({ state: 'ended', status: 'completed', text: 'The tests pass.' }),
    ]),
  );
  expect(chat.plain).toEqual(await main.uiMessages());
});
