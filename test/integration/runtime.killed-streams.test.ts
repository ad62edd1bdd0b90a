import { setTimeout as sleep } from 'node:timers/promises';
import { isObject } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { inLanes } from '../support/fault-sweep.ts';
import { startProcess } from '../support/process.ts';
import { lastUserText, startProvider } from '../support/provider.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

/** Runs a session, and says after each save how much of its answer is saved. */
const teller = `
  import { writeSync } from 'node:fs';
  import { openDeck } from '@tapedeck/runtime';
  import { onCrashPoint } from '@tapedeck/tape/crash-point';
  const [home, url] = process.argv.slice(1);
  const env = { OPENAI_BASE_URL: url, OPENAI_API_KEY: 'test-key' };
  await using deck = await openDeck({ home, model: 'openai-compatible/test-model', env });
  const main = await deck.session('main');
  const textOf = ({ chunk }) => (chunk.type === 'text-delta' ? chunk.delta : '');
  const saved = () => deck.store.live.read('main').flatMap(({ chunks }) => chunks).map(textOf);
  onCrashPoint((point) => {
    const { length } = point === 'stream/saved' ? saved().join('') : '';
    if (length > 0) writeSync(1, 'saved ' + length + '\\n');
  });
  await main.run('Tell me all.');
`;

const words = Array.from({ length: 3_000 }, (_, i) => `word${i} `);
const whole = words.join('');
const seed = Number(process.env.TAPEDECK_SEED ?? 20261122);

test('a process killed at any time leaves the saved part of the answer, and only words of the model', {
  timeout: sized(300_000, 300_000, 3_600_000),
}, async () => {
  await using provider = await startProvider((request) =>
    lastUserText(request).includes('Tell me all.') && !lastUserText(request).includes('Go on.')
      ? { reasoning: 'All of it?', text: words }
      : { text: 'As I said.' },
  );
  const random = seeded(seed);
  const delays = Array.from({ length: sized(3, 3, 100) }, () => random.below(600));
  let grown = 0;
  const faults = await inLanes(2, delays, async (ms) => {
    using home = tempHome();
    await using running = startProcess(teller, home.path, provider.url);
    const saved = () =>
      [...running.printed().matchAll(/^saved (\d+)$/gm)].map(([, length]) => Number(length));
    await running.prints('saved');
    // One is killed behind a later save, however busy the machine is.
    if (ms === delays[0]) await expect.poll(() => saved().length).toBeGreaterThan(1);
    await sleep(ms);
    await running.kill();
    const told = saved();
    await using deck = await openDeck({
      home: home.path,
      model: 'openai-compatible/test-model',
      env: provider.env,
    });
    const main = await deck.session('main');
    expect(await main.run('Go on.')).toMatchObject({ finish: 'stop', text: 'As I said.' });
    const entries = await Array.fromAsync(main.entries());
    const partial = entries.find(({ meta }) => meta.partial === true);
    const parts =
      isObject(partial?.payload) && Array.isArray(partial.payload.content) ? partial.payload.content : [];
    const [reasoning, text] = parts.map((part) => (isObject(part) ? String(part.text) : ''));
    expect(reasoning).toBe('All of it?');
    expect(whole.startsWith(text ?? '')).toBe(true);
    expect((text ?? '').length).toBeGreaterThanOrEqual(Math.max(...told));
    if (told.length > 1) grown += 1;
    const kinds = entries.map(({ kind, name }) => name ?? kind);
    expect(kinds.slice(-5)).toEqual(['message', 'message', 'run/interrupted', 'message', 'message']);
    return (await Array.fromAsync(deck.store.verify())).map(({ message }) => message);
  });
  expect(faults).toEqual([]);
  expect(provider.refusals).toEqual([]);
  expect(grown).toBeGreaterThan(0);
});
