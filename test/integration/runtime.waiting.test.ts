import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { startProcess } from '../support/process.ts';
import { entryLines } from '../support/scripted.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** Does acts to \`main\`, one after another, and ends by itself, or by a kill when it passes a point. */
const actor = `
  import { appendFileSync } from 'node:fs';
  import { openDeck } from '@tapedeck/runtime';
  import { onCrashPoint } from '@tapedeck/tape/crash-point';
  import { tool } from 'ai';
  import { z } from 'zod';
  const [home, acts, dieAt] = process.argv.slice(1);
  const pay = tool({
    inputSchema: z.object({}),
    needsApproval: true,
    execute: async (_, { toolCallId }) => {
      appendFileSync(home + '/paid', toolCallId + ' ');
      return 'paid';
    },
  });
  const look = tool({ inputSchema: z.object({}) });
  await using deck = await openDeck({ home, model: 'script:' + home + '/answers.json', tools: { pay, look } });
  const main = await deck.session('main');
  let armed = false;
  onCrashPoint((point) => {
    if (point === 'inbox/posted') armed = true;
    if (armed && point === dieAt) process.kill(process.pid, 'SIGKILL');
  });
  for (const act of acts.split(', ')) {
  if (act === 'buy') await main.run('Buy');
  if (act === 'approve') await (await main.respond('c1', { approved: true })).run;
  if (act === 'look') await (await main.respond('c2', { output: 'seen' })).run;
  if (act === 'go on') await main.run();
  if (act === 'say') await main.run('Well?');
  }
  console.log(JSON.stringify(await main.status()));
`;

async function act(home: TempHome, what: string, dieAt = ''): Promise<Record<string, unknown> | undefined> {
  await using process = startProcess(actor, home.path, what, dieAt);
  if (dieAt === '') {
    await process.done();
    return JSON.parse(process.printed()) as Record<string, unknown>;
  }
  await expect(process.done(), process.printed()).rejects.toThrow('ended with null');
  return undefined;
}

function shop(): TempHome {
  const home = tempHome();
  const answers = [
    {
      toolCalls: [
        { name: 'pay', input: { _parallel: true }, id: 'c1' },
        { name: 'look', input: {}, id: 'c2' },
      ],
    },
    { text: 'Done.' },
    { text: 'Well.' },
  ];
  writeFileSync(home.file('answers.json'), JSON.stringify(answers));
  writeFileSync(home.file('paid'), '');
  return home;
}

let first: TempHome | undefined;
afterAll(() => first?.[Symbol.dispose]());

/** A shop where one call is answered and one waits: on a push, a copy of the first such. */
async function bought(): Promise<TempHome> {
  const home = shop();
  const model = sized(first, undefined, undefined);
  if (model === undefined) await act(home, 'buy, look');
  else for (const file of ['db', 'graph'] as const) copyFileSync(model[file], home[file]);
  if (first !== undefined) return home;
  first = shop();
  for (const file of ['db', 'graph'] as const) copyFileSync(home[file], first[file]);
  return home;
}

const paid = (home: TempHome) => readFileSync(home.file('paid'), 'utf8');

function lines(home: TempHome): string[] {
  using store = home.open();
  expect([...store.verify()]).toEqual([]);
  return entryLines(store.entries.read('main')).slice(3);
}

test('pending calls survive any number of processes, and each is answered in another', async () => {
  using home = shop();
  expect(await act(home, 'buy')).toMatchObject({
    state: 'waiting',
    waiting: [{ toolCallId: 'c1' }, { toolCallId: 'c2' }],
  });
  expect(await act(home, 'go on')).toMatchObject({ state: 'waiting' });
  expect(await act(home, 'look')).toMatchObject({ state: 'waiting', waiting: [{ toolCallId: 'c1' }] });
  expect(await act(home, 'approve')).toMatchObject({ state: 'idle', waiting: [] });
  expect(paid(home)).toBe('c1 ');
  expect(lines(home).filter((line) => !line.startsWith('event'))).toEqual([
    'look c2 → text seen',
    'pay c1 → text paid',
    'assistant: Done.',
  ]);
});

const deaths = [
  { point: 'inbox/posted', run: 1, why: 'the answer was not given yet' },
  { point: 'run/begun', run: 1, why: 'the answer is on the tape, and the call was not begun' },
  { point: 'call/before-run', run: 0, why: 'no process can know that it did not begin' },
  { point: 'call/ran', run: 1, why: 'what it came to is not recorded' },
  { point: 'call/recorded', run: 1, why: 'what it came to is recorded' },
];

// On a push the kills of runs pass the same points.
test.each(sized([], deaths, deaths))(
  'a process killed at $point during an approval runs the call at most once ($why)',
  async ({ point, run }) => {
    using home = await bought();
    await act(home, 'approve', point);
    const status = await act(home, 'go on');
    if (status?.state === 'waiting') await act(home, 'approve');
    expect(paid(home)).toBe('c1 '.repeat(run));
    const told = lines(home);
    expect(told.filter((line) => line.startsWith('pay c1 →'))).toHaveLength(1);
    expect(told.at(-1)).toBe('assistant: Done.');
    const known = point !== 'call/before-run' && point !== 'call/ran';
    expect(told).toContain(
      known ? 'pay c1 → text paid' : 'pay c1 → error-text Outcome unknown: aborted by host restart.',
    );
  },
);

test('a call approved before a kill and not started is superseded by other input', async () => {
  using home = await bought();
  await act(home, 'approve', 'run/begun');
  expect(await act(home, 'say')).toMatchObject({ state: 'idle' });
  expect(paid(home)).toBe('');
  expect(lines(home)).toContain('pay c1 → execution-denied undefined');
});
