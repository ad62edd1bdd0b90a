import { writeFileSync } from 'node:fs';
import type { RecoveryReport } from '@tapedeck/runtime';
import { assistant, toolCall, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { type Process, startProcess } from '../support/process.ts';
import { startProvider } from '../support/provider.ts';
import { recovered } from '../support/recovery.ts';
import { entryLines } from '../support/scripted.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** Delegates one task for each name, with a tool that reports that it has begun and never ends. */
const delegator = `
  import { openDeck } from '@tapedeck/runtime';
  import { tool } from 'ai';
  import { z } from 'zod';
  const [home, model, ...names] = process.argv.slice(1);
  const stall = tool({
    inputSchema: z.object({}),
    execute: async () => {
      console.log('stalled');
      await new Promise((resolve) => setTimeout(resolve, 600_000));
    },
  });
  await using deck = await openDeck({ home, model, tools: { stall } });
  const main = await deck.session('main');
  const delegation = main.delegate(names.map((name) => ({ task: 'task ' + name, name })), { concurrency: 2 });
  for await (const event of delegation) console.log(event.type, event.session);
`;

/** Child \`a\` is done, \`b\` hangs in a tool, \`c\` hangs in its model, \`d\` was not started. */
const answers = [
  { text: 'A is done.', when: { session: 'a' } },
  { toolCalls: [{ name: 'stall', input: {} }], when: { session: 'b' } },
  { text: 'B goes on.', when: { session: 'b' } },
  { text: 'too late', delayMs: 600_000, when: { session: 'c' } },
];

const later = [
  ...answers.slice(0, 3),
  { text: 'C is done.', when: { session: 'c' } },
  { text: 'D is done.', when: { session: 'd' } },
];

function script(home: TempHome, given: readonly object[]): string {
  writeFileSync(home.file('answers.json'), JSON.stringify(given));
  return `script:${home.file('answers.json')}`;
}

/** A home whose orchestrator was killed with children in every state. */
async function interrupted(home: TempHome): Promise<void> {
  await using running: Process = startProcess(
    delegator,
    home.path,
    script(home, answers),
    'a',
    'b',
    'c',
    'd',
  );
  await running.prints('child-merged a');
  await running.prints('stalled');
  // The third is running once its model has received the request.
  using store = home.open();
  while (store.sessions.find('c')?.task !== 'running') await new Promise((resolve) => setTimeout(resolve, 5));
  await running.kill();
}

const merges = (home: TempHome): string[] => {
  using store = home.open();
  return entryLines(store.entries.read('main', { kind: 'anchor' })).filter((line) => line.includes('merge/'));
};

/** The names in a printed report. */
function report(json: string): Omit<RecoveryReport, 'sessions'> {
  const { sessions: _, ...names } = JSON.parse(json) as RecoveryReport;
  return names;
}

test('children of a killed process are resumed, and each is merged once', async () => {
  using home = tempHome();
  await interrupted(home);
  expect(merges(home)).toEqual(['anchor merge/a']);
  const model = script(home, later);
  const done = await home.here(['recover', '--model', model, '--json']);
  expect([done.code, report(done.stdout)]).toEqual([
    0,
    { resumed: ['b', 'c', 'd'], aborted: [], merged: ['b', 'c', 'd'], waiting: [], busy: [], failed: [] },
  ]);
  expect(merges(home).sort()).toEqual(['a', 'b', 'c', 'd'].map((name) => `anchor merge/${name}`));
  using store = home.open();
  // The recorded answer of b is not requested again, and its tool does not run again.
  expect(entryLines(store.entries.read('b', { own: true })).slice(2)).toEqual([
    expect.stringMatching(/^assistant: \[stall /),
    expect.stringContaining('error-text Outcome unknown'),
    'assistant: B goes on.',
  ]);
  expect(['a', 'b', 'c', 'd'].map((name) => store.sessions.find(name)?.task)).toEqual(
    Array(4).fill('completed'),
  );
  expect([...store.verify()]).toEqual([]);
  const again = await home.here(['recover', '--json']);
  expect(report(again.stdout)).toEqual({
    resumed: [],
    aborted: [],
    merged: [],
    waiting: [],
    busy: [],
    failed: [],
  });
});

test('recovery without a model changes nothing, and --abort aborts the children and merges them', async () => {
  using home = tempHome();
  await interrupted(home);
  // The process may have died before it wrote the last line to the graph file, which every opening does.
  home.open().close();
  const before = home.contents();
  const refused = await home.here(['recover']);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('--abort');
  expect(home.contents()).toEqual(before);
  const done = await home.here(['recover', 'main', '--abort', '--json']);
  expect(report(done.stdout)).toEqual({
    resumed: [],
    aborted: ['b', 'c', 'd'],
    merged: ['b', 'c', 'd'],
    waiting: [],
    busy: [],
    failed: [],
  });
  using store = home.open();
  expect(['b', 'c', 'd'].map((name) => store.sessions.find(name)?.task)).toEqual(Array(3).fill('aborted'));
  expect(store.sessions.find('b')).toMatchObject({
    settled: store.sessions.find('b')?.head,
    delivery: 'merged',
  });
  expect(home.lines().filter(({ type }) => type === 'merge').length).toBe(4);
  expect([...store.verify()]).toEqual([]);
});

test('an answer recorded before its task ended is not requested again', async () => {
  using home = tempHome();
  await using deck = await openDeck({ home: home.path, model: script(home, [{ text: 'Done.' }]) });
  const main = await deck.session('main');
  const child = await main.fork({ name: 'a', deliver: 'merge', task: 'task a' });
  await child.run();
  using store = home.open();
  store.sessions.update('a', { task: 'running' });
  expect(await recovered(deck)).toEqual({
    resumed: [],
    aborted: [],
    merged: ['a'],
    waiting: [],
    busy: [],
    failed: [],
  });
  expect(store.sessions.find('a')).toMatchObject({ task: 'completed', delivery: 'merged' });
  expect(
    entryLines(store.entries.read('a', { own: true })).filter((line) => line.startsWith('assistant')),
  ).toEqual(['assistant: Done.']);
});

test('two concurrent recoveries repeat nothing, and leave the runs of live processes alone', async () => {
  using home = tempHome();
  await interrupted(home);
  const model = script(home, later);
  const both = await Promise.all([1, 2].map(() => home.tape(['recover', '--model', model, '--json'])));
  for (const { code } of both) expect([0, 6]).toContain(code);
  expect(merges(home).sort()).toEqual(['a', 'b', 'c', 'd'].map((name) => `anchor merge/${name}`));
  using store = home.open();
  for (const name of ['b', 'c', 'd'])
    expect(
      entryLines(store.entries.read(name, { own: true })).filter((line) => /^assistant: \w/.test(line)),
    ).toHaveLength(1);
  const { stdout } = await home.here(['recover', '--model', model, '--json']);
  expect(report(stdout).resumed).toEqual([]);
});

test('a parent that died inside a tool call gets results first, and one that cannot be recovered blocks no other', async () => {
  using home = tempHome();
  {
    using store = home.open();
    for (const parent of ['main', 'other']) {
      store.sessions.open(parent);
      store.lineage.fork(parent, { name: `of-${parent}`, deliver: 'merge' });
      store.entries.append(`of-${parent}`, [assistant('Done.')]);
      store.sessions.update(`of-${parent}`, { task: 'completed' });
    }
    store.entries.append('main', [assistant([toolCall('c1', 'delegate', {})])]);
  }
  const done = await home.here(['recover', '--json']);
  expect([done.code, report(done.stdout).merged]).toEqual([0, ['of-main', 'of-other']]);
  using store = home.open();
  expect(entryLines(store.entries.read('main', { last: 3 }))[0]).toContain('Outcome unknown');
  expect([...store.verify()]).toEqual([]);
});

test('a partial answer is no result', async () => {
  using home = tempHome();
  {
    using store = home.open();
    store.sessions.open('main');
    store.lineage.fork('main', { name: 'kid', deliver: 'merge' });
    store.entries.append('kid', [assistant('The answer is', { run: 'r', partial: true })]);
    store.sessions.update('kid', { task: 'running' });
  }
  expect((await home.here(['recover'])).code).toBe(0);
  using store = home.open();
  expect(store.sessions.find('kid')?.task).toBe('aborted');
});

test('a killed root is recovered from the command line, and a dry run shows it first', async () => {
  using home = tempHome();
  {
    using store = home.open();
    store.sessions.open('main');
    store.entries.append('main', [user('Go', { run: 'killed' })]);
  }
  const model = script(home, [{ text: 'Gone.' }]);
  const before = home.contents();
  const shown = await home.here(['recover', 'main', '--dry-run', '--model', model]);
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  expect(shown.stdout).toMatch(
    /^Would continue main\n {2}main {2}@2 [0-9a-f]{8}; model script:\S+answers\.json\n$/,
  );
  expect(home.contents()).toEqual(before);
  const done = await home.here(['recover', 'main', '--model', model, '--json']);
  expect(done.code).toBe(0);
  expect(JSON.parse(done.stdout)).toMatchObject({
    resumed: ['main'],
    sessions: [{ session: 'main', act: 'continue', head: { before: 2, after: 3 } }],
  });
  expect((await home.here(['recover', 'main'])).stdout).toBe('Nothing to recover\n');
});

test('a session without a named model continues with the one that gave its last answer', async () => {
  using home = tempHome();
  await using provider = await startProvider(() => ({ text: 'Once more.' }));
  await using deck = await openDeck({
    home: home.path,
    model: 'openai-compatible/first',
    env: provider.env,
  });
  await (await deck.session('main')).run('Go');
  deck.store.entries.append('main', [user('Again', { run: 'killed' })]);
  await using other = await openDeck({
    home: home.path,
    model: 'openai-compatible/second',
    env: provider.env,
  });
  expect(await other.recover()).toMatchObject({
    resumed: ['main'],
    sessions: [{ model: 'openai-compatible/first' }],
  });
  expect(provider.requests.length).toBe(2);
  expect(JSON.stringify(provider.requests.at(-1))).toContain('first');
});
