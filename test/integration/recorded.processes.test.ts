import { existsSync, readFileSync } from 'node:fs';
import { recorded, recordedTools, toPrompt } from '@tapedeck/runtime';
import { generateText, isStepCount, type ModelMessage, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { startProcess } from '../support/process.ts';
import { type ChatRequest, isAfterTools, startWholeProvider } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** An application with a loop of its own. Its tool writes that it acts, and then never ends. */
const application = `
  import { appendFileSync, writeSync } from 'node:fs';
  import { openDeck, recorded, recordedTools } from '@tapedeck/runtime';
  import { isStepCount, streamText, tool } from 'ai';
  import { z } from 'zod';
  const [home, url, effects, wrap] = process.argv.slice(1);
  const env = { OPENAI_BASE_URL: url, OPENAI_API_KEY: 'test-key' };
  const deck = await openDeck({ home, env });
  const main = await deck.session('main');
  const pay = tool({
    inputSchema: z.object({ to: z.string() }),
    execute: async ({ to }) => {
      appendFileSync(effects, 'paid ' + to + '\\n');
      writeSync(1, 'acting\\n');
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    },
  });
  const { textStream } = streamText({
    model: await recorded(main, 'openai-compatible/test-model'),
    tools: wrap === 'yes' ? recordedTools(main, { pay }) : { pay },
    stopWhen: isStepCount(5),
    prompt: 'Pay Ann.',
  });
  for await (const text of textStream) writeSync(1, 'read ' + text + '\\n');
`;

const paying = (request: ChatRequest) =>
  isAfterTools(request)
    ? { text: 'Ann is paid.' }
    : { text: 'Now.', calls: [{ id: 'c1', name: 'pay', arguments: { to: 'Ann' } }] };

/** The lines of `main` without its start. */
function linesOf(home: TempHome): string[] {
  using store = home.open();
  return entryLines(store.entries.read('main')).slice(1);
}

/** Continues the conversation of the tape in this process; returns the text, and the messages that it began with. */
async function resumed(
  home: TempHome,
  url: string,
  { change = (messages) => messages }: { change?: (messages: ModelMessage[]) => ModelMessage[] } = {},
) {
  const env = { OPENAI_BASE_URL: url, OPENAI_API_KEY: 'test-key' };
  await using deck = await openDeck({ home: home.path, env });
  const main = await deck.session('main');
  const { messages } = await main.view({ target: { provider: 'openai-compatible.chat' } });
  const read = await toPrompt(messages, (hash) => deck.store.entries.blob(hash));
  const pay = tool({ inputSchema: z.object({ to: z.string() }), execute: async () => 'paid again' });
  const { text } = await generateText({
    model: await recorded(main, 'openai-compatible/test-model'),
    tools: recordedTools(main, { pay }),
    messages: change(read),
    stopWhen: isStepCount(5),
    maxRetries: 0,
  });
  return { text, read };
}

/** The first answer never ends. */
const hangsOnce = (_: unknown, index: number) =>
  index === 0 ? { text: ['I think ', 'that '], hang: true as const } : { text: 'Done.' };

/** Runs the application, and kills it once it has read a part of the answer. */
async function killInAnswer(home: TempHome, url: string): Promise<void> {
  await using running = startProcess(application, home.path, url, home.file('effects'), 'yes');
  await running.prints('read that');
  await running.kill();
}

test('a process killed in the middle of an answer: its part is on the tape, and the next process goes on', async () => {
  await using provider = await startWholeProvider(hangsOnce);
  using home = tempHome();
  await killInAnswer(home, provider.url);
  const { text, read } = await resumed(home, provider.url);
  expect(text).toBe('Done.');
  expect(read.map(({ role }) => role)).toEqual(['user']);
  expect(linesOf(home)).toEqual([
    'user: Pay Ann.',
    'assistant: I think that',
    'event run/interrupted',
    'rewind',
    'assistant: Done.',
  ]);
});

test('tape recover records the part of a killed answer and continues it', async () => {
  await using provider = await startWholeProvider(hangsOnce);
  using home = tempHome();
  await killInAnswer(home, provider.url);
  const { code, stderr } = await home.tape(['recover'], { env: { ...provider.env } });
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(linesOf(home).slice(0, 3)).toEqual([
    'user: Pay Ann.',
    'assistant: I think that',
    'event run/interrupted',
  ]);
  expect(linesOf(home).at(-1)).toBe('assistant: Done.');
  expect((await home.tape(['usage', 'main', '--json'])).stdout).toContain('"steps":1');
});

test('a process killed in a recorded tool: the call has an unknown outcome, and does not run again', async () => {
  await using provider = await startWholeProvider(paying);
  using home = tempHome();
  {
    await using running = startProcess(application, home.path, provider.url, home.file('effects'), 'yes');
    await running.prints('acting');
    await running.kill();
  }
  expect(linesOf(home)).toEqual([
    'user: Pay Ann.',
    'assistant: Now. [pay c1]',
    'event run/waiting',
    'event run/begun',
  ]);
  expect((await resumed(home, provider.url)).text).toBe('Ann is paid.');
  expect(linesOf(home).slice(4)).toEqual([
    'pay c1 → error-text Outcome unknown: aborted by host restart.',
    'assistant: Ann is paid.',
  ]);
  expect(readFileSync(home.file('effects'), 'utf8')).toBe('paid Ann\n');
});

test('a process killed in another tool: the call waits for its result, which the application gives', async () => {
  await using provider = await startWholeProvider(paying);
  using home = tempHome();
  {
    await using running = startProcess(application, home.path, provider.url, home.file('effects'), 'no');
    await running.prints('acting');
    await running.kill();
  }
  expect(linesOf(home)).toEqual(['user: Pay Ann.', 'assistant: Now. [pay c1]', 'event run/waiting']);
  expect((await home.tape(['status', 'main', '--json'])).stdout).toContain('"waiting"');
  const paid = { type: 'text', value: 'The bank says that Ann was paid.' } as const;
  const change = (messages: ModelMessage[]): ModelMessage[] =>
    messages.map((message) =>
      message.role === 'tool'
        ? { role: 'tool', content: message.content.map((part) => ({ ...part, output: paid }) as never) }
        : message,
    );
  expect((await resumed(home, provider.url, { change })).text).toBe('Ann is paid.');
  expect(linesOf(home).slice(3)).toEqual([
    'pay c1 → text The bank says that Ann was paid.',
    'assistant: Ann is paid.',
  ]);
});

test('while a process makes a call, another one is refused, and tape abort stops it', async () => {
  await using provider = await startWholeProvider(() => ({ text: ['I think '], hang: true }));
  using home = tempHome();
  await using running = startProcess(application, home.path, provider.url, home.file('effects'), 'yes');
  await running.prints('read I');
  await expect(resumed(home, provider.url)).rejects.toMatchObject({ code: 'SESSION_BUSY' });
  expect((await home.tape(['status', 'main', '--json'])).stdout).toContain('"busy"');
  await home.tape(['abort', 'main']);
  await expect.poll(() => linesOf(home).at(-1)).toBe('event run/aborted');
  await running.kill();
});

/** The application again, whose tool ends. It kills itself when it passes a point for the nth time. */
const mortal = `
  import { appendFileSync } from 'node:fs';
  import { openDeck, recorded, recordedTools, toPrompt } from '@tapedeck/runtime';
  import { onCrashPoint } from '@tapedeck/tape/crash-point';
  import { isStepCount, streamText, tool } from 'ai';
  import { z } from 'zod';
  const [home, url, effects, point, nth] = process.argv.slice(1);
  let passed = 0;
  onCrashPoint((at) => {
    if (at === point && (passed += 1) === Number(nth)) process.kill(process.pid, 'SIGKILL');
  });
  const env = { OPENAI_BASE_URL: url, OPENAI_API_KEY: 'test-key' };
  await using deck = await openDeck({ home, env });
  const main = await deck.session('main');
  const pay = tool({
    inputSchema: z.object({ to: z.string() }),
    execute: async ({ to }) => {
      appendFileSync(effects, 'paid ' + to + '\\n');
      return 'paid';
    },
  });
  const { messages } = await main.view({ target: { provider: 'openai-compatible.chat' } });
  const read = await toPrompt(messages, (hash) => deck.store.entries.blob(hash));
  const { text } = streamText({
    model: await recorded(main, 'openai-compatible/test-model'),
    tools: recordedTools(main, { pay }),
    stopWhen: isStepCount(5),
    maxRetries: 0,
    messages: read.length > 0 ? read : [{ role: 'user', content: 'Pay Ann.' }],
  });
  console.log('said ' + (await text));
`;

/** Each point once. */
const once = [
  ['run/begun', 2],
  ['answer/arrived', 1],
  ['answer/recorded', 1],
  ['call/ran', 1],
  ['stream/before-save', 1],
  ['stream/saved', 2],
  ['call/before-run', 1],
  ['call/recorded', 1],
] as const;
const again = [
  ['run/begun', 1],
  ['stream/before-save', 2],
  ['stream/saved', 1],
  ['answer/arrived', 2],
  ['answer/recorded', 2],
] as const;

test.each(sized<readonly (readonly [string, number])[]>(once, once, [...once, ...again]))(
  'a process killed at %s, the %i. time: the next one ends the conversation',
  async (point, nth) => {
    await using provider = await startWholeProvider((request) =>
      isAfterTools(request)
        ? paying(request)
        : { text: 'Now.', calls: [{ name: 'pay', arguments: { to: 'Ann' } }] },
    );
    using home = tempHome();
    const effects = home.file('effects');
    {
      await using running = startProcess(mortal, home.path, provider.url, effects, point, String(nth));
      await expect(running.done()).rejects.toThrow();
    }
    await using again = startProcess(mortal, home.path, provider.url, effects, 'none', '1');
    await again.done();
    expect(again.printed()).toContain('said ');
    using store = home.open();
    expect([...store.verify()]).toEqual([]);
    const calls = entryLines(store.entries.read('main')).filter((line) => line.startsWith('assistant: Now.'));
    const paid = existsSync(effects) ? readFileSync(effects, 'utf8').split('\n').length - 1 : 0;
    // Each time that the model called it and the tape says that it ran, and no more.
    expect(paid).toBeLessThanOrEqual(calls.length);
    const begun = entryLines(store.entries.read('main')).filter((line) => line === 'event run/begun').length;
    expect(paid).toBeLessThanOrEqual(begun);
    expect(provider.refusals).toEqual([]);
    expect(store.sessions.find('main')?.openRun).toBeUndefined();
  },
);
