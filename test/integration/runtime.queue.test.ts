import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { startProcess } from '../support/process.ts';
import { lastUserText, type Provider, startProvider } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const model = 'openai-compatible/test-model';

/** A provider whose answers to `slow` come when they are let go; all others echo. */
async function gatedProvider(): Promise<Provider & { entered: Promise<void>; open: () => void }> {
  const entered = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const provider = await startProvider(async (request) => {
    const asked = lastUserText(request);
    if (asked !== 'slow') return { text: `${asked}!` };
    entered.resolve();
    await gate.promise;
    return { text: 'slow!' };
  });
  return { ...provider, entered: entered.promise, open: gate.resolve };
}

/** Runs `main` in a process of its own, with everything that waits after it. */
const owner = `
  import { openDeck } from '@tapedeck/runtime';
  const [home, prompt] = process.argv.slice(1);
  await using deck = await openDeck({ home, model: '${model}', env: process.env });
  const main = await deck.session('main');
  for (let run = main.run(prompt), n = 1; run !== undefined; run = run.following, n += 1) {
    const { finish } = await run;
    console.log('run ' + n + ' ' + finish);
  }
  console.log('over');
`;

function startOwner(home: TempHome, provider: Provider, prompt: string) {
  Object.assign(process.env, provider.env);
  return startProcess(owner, home.path, prompt);
}

const linesOf = (home: TempHome): string[] => {
  using store = home.open();
  return entryLines(store.entries.read('main')).slice(1);
};

test('messages to a run in another process are answered by that process, one after the other', async () => {
  using home = tempHome();
  await using provider = await gatedProvider();
  await using running = startOwner(home, provider, 'slow');
  await provider.entered;
  await using deck = await openDeck({ home: home.path, model, env: provider.env });
  const main = await deck.session('main');
  expect(await main.status()).toMatchObject({ state: 'busy', owner: { pid: running.child.pid } });
  expect(await main.send('one')).toMatchObject({ state: 'queued' });
  expect(await main.send('two', { mode: 'followup' })).toMatchObject({ state: 'queued' });
  await expect(main.run('no')).rejects.toMatchObject({ code: 'SESSION_BUSY' });
  provider.open();
  await running.prints('over');
  expect(linesOf(home)).toEqual([
    'user: slow',
    'assistant: slow!',
    'user: one',
    'assistant: one!',
    'user: two',
    'assistant: two!',
  ]);
  await main.idle();
  expect(await main.status()).toMatchObject({ state: 'idle', queued: 0 });
});

test('a steering message without a step left starts its own run', async () => {
  using home = tempHome();
  await using provider = await gatedProvider();
  await using running = startOwner(home, provider, 'slow');
  await provider.entered;
  await using deck = await openDeck({ home: home.path, env: provider.env });
  await (await deck.session('main')).send('also', { mode: 'steer-backlog' });
  provider.open();
  await running.prints('run 2 stop');
  await running.prints('over');
  expect(linesOf(home)).toEqual(['user: slow', 'assistant: slow!', 'user: also', 'assistant: also!']);
});

test('a steering message gives a run one more step where it would have ended', async () => {
  using home = tempHome();
  await using provider = await gatedProvider();
  await using running = startOwner(home, provider, 'slow');
  await provider.entered;
  await using deck = await openDeck({ home: home.path, env: provider.env });
  await (await deck.session('main')).send('also', { mode: 'steer' });
  provider.open();
  await running.prints('over');
  const lines = ['user: slow', 'assistant: slow!', 'user: also', 'assistant: also!'];
  expect(linesOf(home)).toEqual(lines);
  using store = home.open();
  const runs = [...store.entries.read('main', { from: 2 })].map(({ meta }) => meta.run);
  expect(new Set(runs).size).toBe(1);
});

test('an interruption from another process keeps the partial answer, and is answered next', async () => {
  using home = tempHome();
  await using provider = await startProvider((request) =>
    lastUserText(request) === 'slow' ? { text: ['I am ', 'thinking'], hang: true } : { text: 'At once.' },
  );
  await using running = startOwner(home, provider, 'slow');
  await using deck = await openDeck({ home: home.path, env: provider.env });
  const main = await deck.session('main');
  using store = home.open();
  const heard = () => store.live.read('main').flatMap(({ chunks }) => [...chunks]);
  while (!JSON.stringify(heard()).includes('thinking')) await sleep(5);
  expect(await main.send('Stop', { mode: 'interrupt' })).toMatchObject({ state: 'interrupted' });
  await running.prints('over');
  expect(linesOf(home)).toEqual([
    'user: slow',
    'assistant: I am thinking',
    'event run/aborted',
    'user: Stop',
    'assistant: At once.',
  ]);
});

test('an abort from another process stops the run, and leaves the inbox as it is', async () => {
  using home = tempHome();
  await using provider = await gatedProvider();
  await using running = startOwner(home, provider, 'slow');
  await provider.entered;
  await using deck = await openDeck({ home: home.path, env: provider.env });
  const main = await deck.session('main');
  await main.send('later');
  await main.abort('enough');
  await running.prints('run 1 aborted');
  await running.prints('over');
  expect(linesOf(home)).toEqual(['user: slow', 'event run/aborted']);
  expect(await main.status()).toMatchObject({ state: 'idle', queued: 1 });
});

test('a message posted while the owner releases the session is never stranded', async () => {
  using home = tempHome();
  const rounds = sized(8, 12, 200);
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'a!' }, { text: 'b!' }]));
  const settings = { model: `script:${home.file('answers.json')}` };
  using one = home.open();
  using two = home.open();
  await using first = await openDeck({ ...settings, store: one });
  await using second = await openDeck({ ...settings, store: two });
  for (let round = 0; round < rounds; round += 1) {
    const name = `s${round}`;
    const owner = await first.session(name);
    const sender = await second.session(name);
    const run = owner.run('a');
    for await (const event of run) if (event.type === 'session-completed') break;
    // From before the lease is given back to after it.
    for (let turn = 0; turn < round % 20; turn += 1) await Promise.resolve();
    await sender.send('b');
    await run;
    while (one.leases.list().length > 0) await sleep(1);
    expect(one.inbox.list(name)).toEqual([]);
    expect(entryLines(one.entries.read(name, { from: 2 }))).toEqual([
      'user: a',
      'assistant: a!',
      'user: b',
      'assistant: b!',
    ]);
  }
});
