import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { note } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { startProcess } from '../support/process.ts';
import { entryLines } from '../support/scripted.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/**
 * Runs a session of a home with a script and two tools: `work` reports that it has begun and then takes the given
 * number of milliseconds; `listen` waits until the session's inbox has an item.
 */
const runner = `
  import { openDeck } from '@tapedeck/runtime';
  import { tool } from 'ai';
  import { z } from 'zod';
  const [home, model, name, input] = process.argv.slice(1);
  const work = tool({
    inputSchema: z.object({ ms: z.number() }),
    execute: async ({ ms }) => {
      console.log('at work');
      await new Promise((resolve) => setTimeout(resolve, ms));
      return 'worked';
    },
  });
  const listen = tool({
    inputSchema: z.object({}),
    execute: async () => {
      console.log('at work');
      while ((await deck.store.inbox.list(name)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      return 'heard';
    },
  });
  await using deck = await openDeck({ home, model, tools: { work, listen } });
  const run = (await deck.session(name)).run(input);
  for await (const { type } of run) console.log(type);
  console.log('finish', (await run).finish);
`;

const work = (ms: number) => ({ toolCalls: [{ name: 'work', input: { ms } }] });

const listen = { toolCalls: [{ name: 'listen', input: {} }] };

function script(home: TempHome, ...answers: readonly object[]): string {
  writeFileSync(home.file('answers.json'), JSON.stringify(answers));
  return `script:${home.file('answers.json')}`;
}

const linesOf = (home: TempHome, name: string): string[] => {
  using store = home.open();
  return entryLines(store.entries.read(name));
};

function soundHome(home: TempHome): void {
  using store = home.open();
  expect([...store.verify()]).toEqual([]);
}

test('a process killed in a tool leaves its call open: the next run records that, and does not repeat the call', async () => {
  using home = tempHome();
  const model = script(home, work(60_000), { text: 'I do not know whether it worked.' });
  await using running = startProcess(runner, home.path, model, 'main', 'Work');
  await running.prints('at work');
  await running.kill();

  let runs = 0;
  const again = tool({
    inputSchema: z.object({ ms: z.number() }),
    execute: async () => {
      runs += 1;
      return 'worked';
    },
  });
  await using deck = await openDeck({ home: home.path, model, tools: { work: again } });
  const main = await deck.session('main');
  expect(await main.info()).toMatchObject({ head: 3, settled: 2 });
  expect(await main.run()).toMatchObject({ finish: 'stop', text: 'I do not know whether it worked.' });
  expect(runs).toBe(0);
  expect(linesOf(home, 'main').slice(1)).toEqual([
    'user: Work',
    expect.stringMatching(/^assistant: \[work call_/),
    expect.stringMatching(/^work call_\w+ → error-text Outcome unknown: aborted by host restart\.$/),
    'assistant: I do not know whether it worked.',
  ]);
  soundHome(home);
});

test('a process killed during a model call leaves a session that continues', async () => {
  using home = tempHome();
  const slow = script(home, { text: 'slow', delayMs: 60_000 });
  await using running = startProcess(runner, home.path, slow, 'main', 'Think');
  await running.prints('run-started');
  await running.kill();
  const model = script(home, { text: 'Here I am.' });
  await using deck = await openDeck({ home: home.path, model });
  expect(await (await deck.session('main')).run()).toMatchObject({ text: 'Here I am.' });
  // Whether a chunk of the answer was saved before the kill depends on the machine.
  const lines = linesOf(home, 'main').filter((line) => line !== 'event run/interrupted');
  expect(lines.slice(1)).toEqual(['user: Think', 'assistant: Here I am.']);
  soundHome(home);
});

test('a session that another process runs is busy, and the error names that process', async () => {
  using home = tempHome();
  const model = script(home, listen, { text: 'Done.' });
  await using running = startProcess(runner, home.path, model, 'main', 'Work');
  await running.prints('at work');
  await using deck = await openDeck({ home: home.path, model });
  const main = await deck.session('main');
  const before = await main.info();
  await expect(main.run('Me too')).rejects.toMatchObject({
    code: 'SESSION_BUSY',
    data: { owner: { pid: running.child.pid } },
  });
  expect(await main.info()).toEqual(before);
  await deck.store.inbox.post('main', { body: { type: 'append', drafts: [note('stop', {})] } });
  await running.done();
  expect(linesOf(home, 'main')).toHaveLength(6);
});

test('a merge into a parent that another process runs arrives once, at its next settled point', async () => {
  using home = tempHome();
  const model = script(
    home,
    { ...listen, when: { session: 'main' } },
    { text: 'I see the report.', when: { session: 'main', text: 'Two pages' } },
    { text: 'Two pages are out of date.', when: { session: 'docs' } },
  );
  home.session('main');
  await using deck = await openDeck({ home: home.path, model });
  const child = await (await deck.session('main')).fork({ name: 'docs' });
  await child.run('Check the docs.');
  await using running = startProcess(runner, home.path, model, 'main', 'Work');
  await running.prints('at work');
  const merged = await child.finish({ at: 'step' });
  expect(merged).toMatchObject({ parent: 'main', state: 'merged' });
  await running.prints('finish stop');
  await running.done();
  expect(linesOf(home, 'main').slice(1)).toEqual([
    'user: Work',
    expect.stringMatching(/^assistant: \[listen/),
    expect.stringMatching(/^listen .* → text heard$/),
    'anchor merge/docs',
    expect.stringContaining('Two pages are out of date.'),
    'assistant: I see the report.',
  ]);
  expect(merged.seq).toBe(5);
  expect(await child.finish()).toMatchObject({ seq: 5, repeated: true });
  soundHome(home);
});

test('a merge into a parent that this process runs arrives once, at its next settled point', async () => {
  using home = tempHome();
  const model = script(
    home,
    { ...work(100), when: { session: 'main' } },
    { text: 'I see the report.', when: { session: 'main', text: 'Two pages' } },
    { text: 'Two pages are out of date.', when: { session: 'docs' } },
  );
  const started = Promise.withResolvers<void>();
  const slow = tool({
    inputSchema: z.object({ ms: z.number() }),
    execute: async ({ ms }) => {
      started.resolve();
      await sleep(ms);
      return 'worked';
    },
  });
  await using deck = await openDeck({ home: home.path, model, tools: { work: slow } });
  const main = await deck.session('main');
  const child = await main.fork({ name: 'docs' });
  await child.run('Check the docs.');
  const run = main.run('Work');
  await started.promise;
  const [merged, result] = await Promise.all([child.finish({ at: 'step' }), run]);
  expect(result).toMatchObject({ text: 'I see the report.' });
  expect(merged).toMatchObject({ seq: 5 });
  expect(linesOf(home, 'main').filter((line) => line === 'anchor merge/docs')).toHaveLength(1);
});

test('a caller that does not wait for a busy parent gets an error that names the queued merge, which arrives later', async () => {
  using home = tempHome();
  const model = script(
    home,
    { ...listen, when: { session: 'main' } },
    { text: 'Two pages.', when: { session: 'docs' } },
    { text: 'Done.' },
  );
  home.session('main');
  await using deck = await openDeck({ home: home.path, model });
  const child = await (await deck.session('main')).fork({ name: 'docs' });
  await child.run('Check the docs.');
  await using running = startProcess(runner, home.path, model, 'main', 'Work');
  await running.prints('at work');
  await expect(child.finish({ waitMs: 0 })).rejects.toMatchObject({
    code: 'SESSION_MERGE_WAITING',
    data: { child: 'docs', queued: expect.any(String) },
  });
  await running.done();
  expect(linesOf(home, 'main')).toContain('anchor merge/docs');
  expect(await child.finish()).toMatchObject({ repeated: true });
});

test('a merge queued for an owner that is killed is done by the waiting process', async () => {
  using home = tempHome();
  const model = script(
    home,
    { text: 'never', delayMs: 60_000, when: { session: 'main' } },
    { text: 'Two pages.', when: { session: 'docs' } },
  );
  home.session('main');
  await using deck = await openDeck({ home: home.path, model });
  const child = await (await deck.session('main')).fork({ name: 'docs' });
  await child.run('Check the docs.');
  await using running = startProcess(runner, home.path, model, 'main', 'Think');
  await running.prints('run-started');
  const merging = child.finish();
  await sleep(150);
  await running.kill();
  const { state, seq } = await merging;
  expect(state).toBe('merged');
  // The interrupted run is recorded before the merge, whose mark and message are the last entries.
  expect((await deck.store.sessions.find('main'))?.head).toBe(seq + 1);
  soundHome(home);
});

test('one key in two processes is one child, which runs once', async () => {
  using home = tempHome();
  const model = script(home, work(300), { text: 'Done.' });
  home.session('main');
  const delegating = `
    import { openDeck } from '@tapedeck/runtime';
    import { tool } from 'ai';
    import { z } from 'zod';
    const [home, model] = process.argv.slice(1);
    const work = tool({
      inputSchema: z.object({ ms: z.number() }),
      execute: async ({ ms }) => {
        console.log('at work');
        await new Promise((resolve) => setTimeout(resolve, ms));
        return 'worked';
      },
    });
    await using deck = await openDeck({ home, model, tools: { work } });
    const main = await deck.session('main');
    const [outcome] = await main.delegate({ task: 'Work', key: 'monday' });
    console.log(outcome.session, outcome.status, outcome.merged.seq);
  `;
  await using first = startProcess(delegating, home.path, model);
  await using second = startProcess(delegating, home.path, model);
  await Promise.all([first.prints(' completed 2'), second.prints(' completed 2')]);
  await Promise.all([first.done(), second.done()]);
  using store = home.open();
  const [child] = store.sessions.list({ parent: 'main', all: true });
  expect(store.sessions.list({ parent: 'main', all: true })).toHaveLength(1);
  expect(entryLines(store.entries.read(child?.session ?? '', { own: true }))).toEqual([
    'anchor fork/start',
    'anchor intention',
    expect.stringMatching(/^assistant: \[work/),
    expect.stringMatching(/worked$/),
    'assistant: Done.',
  ]);
  expect(store.sessions.find('main')).toMatchObject({ head: 3 });
});

test('entries appended while another process streams are in the next prompt', async () => {
  using home = tempHome();
  const model = script(home, listen, { text: 'En français.', when: { text: 'In French' } }, { text: 'No.' });
  await using running = startProcess(runner, home.path, model, 'main', 'Work');
  await running.prints('at work');
  const line = JSON.stringify({ role: 'user', content: 'In French, please.' });
  const appended = await home.tape(['append', 'main', '--json'], { stdin: `${line}\n` });
  expect(appended).toMatchObject({ code: 0 });
  await running.done();
  expect(linesOf(home, 'main').slice(-2)).toEqual(['user: In French, please.', 'assistant: En français.']);
});

test('many processes append to one session at once: every entry is in one gapless chain', async () => {
  using home = tempHome();
  home.session('main');
  const appending = `
    import { openJournal } from '@tapedeck/graph/journal';
    import { openTapeStore, user } from '@tapedeck/tape';
    const [home, who] = process.argv.slice(1);
    using store = openTapeStore(home + '/tape.db', { journal: openJournal(home + '/session_graph.jsonl') });
    for (let i = 0; i < 25; i += 1) store.entries.append('main', [user(who + i), user(who + i + '+')]);
  `;
  const writers = ['a', 'b', 'c', 'd'].map((who) => startProcess(appending, home.path, who));
  await Promise.all(writers.map((writer) => writer.done()));
  using store = home.open();
  const said = [...store.entries.read('main', { kind: 'message' })].map(({ payload }) => {
    const content = isObject(payload) ? payload.content : [];
    return String(Array.isArray(content) && isObject(content[0]) ? content[0].text : '');
  });
  expect(said).toHaveLength(200);
  for (const who of ['a', 'b', 'c', 'd'])
    expect(said.filter((text) => text.startsWith(who))).toEqual(
      Array.from({ length: 25 }, (_, i) => [`${who}${i}`, `${who}${i}+`]).flat(),
    );
  soundHome(home);
});
