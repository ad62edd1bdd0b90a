import { delegateTool } from '@tapedeck/runtime';
import { ProgressMeter } from '@tapedeck/runtime/internal';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { afterEach, expect, test, vi } from 'vitest';
import { eventLine, eventsOf, scriptedDeck } from '../support/scripted.ts';

const answers: readonly ScriptAnswer[] = [
  {
    toolCalls: [{ name: 'delegate', id: 'd1', input: { tasks: [{ task: 'Check the docs' }] } }],
    when: { session: 'main' },
  },
  { text: 'All is done.', when: { session: 'main' } },
  { text: 'Docs are fine.', when: { session: 'main-*' } },
];

/** What a run of a parent sends of its child. */
async function sentOf(childEvents?: 'summary' | 'all' | 'none') {
  await using home = await scriptedDeck(answers, {
    tools: { delegate: delegateTool(childEvents === undefined ? {} : { childEvents }) },
  });
  const main = await home.deck.session('main');
  const run = main.run('Go');
  const events = await eventsOf(run);
  const chunks = await Array.fromAsync(run.uiStream());
  const [child] = home.store.sessions.list({ parent: 'main' });
  const progress = events.filter((event) => event.type === 'child-progress');
  const own = events.filter((event) => event.type === 'child-event');
  return { child: child?.session, progress, own, chunks };
}

test('by default a parent sends how its child does, as one part of its answer, and no event of the child', async () => {
  const { child, progress, own, chunks } = await sentOf();
  expect(own).toEqual([]);
  expect(progress[0]).toEqual({
    type: 'child-progress',
    session: child,
    task: 'Check the docs',
    toolCallId: 'd1',
    state: 'started',
    steps: 0,
    tokens: 0,
  });
  expect(progress.map(({ state }) => state)).toEqual(expect.arrayContaining(['started', 'running', 'ended']));
  expect(progress.at(-1)).toMatchObject({
    state: 'ended',
    status: 'completed',
    steps: 1,
    text: 'Docs are fine.',
  });
  const parts = chunks.filter(({ type }) => type === 'data-child');
  expect(parts).toHaveLength(progress.length);
  expect(new Set(parts.map((part) => 'id' in part && part.id))).toEqual(new Set([child]));
});

test('with all, a parent sends each event of its child, too', async () => {
  const { child, progress, own } = await sentOf('all');
  expect(progress.at(-1)).toMatchObject({ state: 'ended' });
  expect(new Set(own.map(({ session }) => session))).toEqual(new Set([child]));
  expect(own.map(({ event }) => eventLine(event))).toEqual([
    'run-started',
    'text Docs ',
    'text are ',
    'text fine.',
    'iteration-completed 1',
    'session-completed stop',
  ]);
});

test('with none, a parent sends nothing of its child', async () => {
  const { progress, own, chunks } = await sentOf('none');
  expect([...progress, ...own]).toEqual([]);
  expect(chunks.filter(({ type }) => type === 'data-child')).toEqual([]);
});

afterEach(() => vi.useRealTimers());

test('the progress of a child is sent at most twice a second, and at once when it begins, waits or ends', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const sent: { readonly at: number; readonly state: string; readonly text: string | undefined }[] = [];
  const start = performance.now();
  const meter = new ProgressMeter(
    { session: 'kid', state: 'started', steps: 0, tokens: 0 },
    ({ state, text }) => sent.push({ at: performance.now() - start, state, text }),
  );
  vi.advanceTimersByTime(10);
  meter.take({ type: 'run-started', run: 'r', session: 'kid', at: 0 });
  // A thousand pieces in ten seconds.
  for (let i = 1; i <= 1_000; i += 1) {
    meter.take({ type: 'content-chunk', text: `${i} ` });
    vi.advanceTimersByTime(10);
  }
  const live = sent.slice(2);
  expect(sent.slice(0, 2)).toEqual([
    { at: 0, state: 'started', text: undefined },
    { at: 10, state: 'running', text: undefined },
  ]);
  for (const [i, { at }] of live.entries()) expect(at - (live[i - 1]?.at ?? 10)).toBeGreaterThanOrEqual(500);
  expect(live.length).toBeGreaterThanOrEqual(18);
  expect(live.length).toBeLessThanOrEqual(20);
  vi.advanceTimersByTime(10_000);
  expect(sent.at(-1)?.text).toMatch(/1000 $/);
  const before = sent.length;
  meter.take({ type: 'content-chunk', text: 'and ' });
  meter.end('completed', 'All of them.');
  expect(sent.slice(before)).toEqual([
    { at: expect.any(Number), state: 'running', text: expect.stringMatching(/and $/) },
    { at: expect.any(Number), state: 'ended', text: 'All of them.' },
  ]);
  vi.advanceTimersByTime(10_000);
  expect(sent).toHaveLength(before + 2);
});
