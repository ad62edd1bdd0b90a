import { eventsOf as eventsAmong, type SessionEvent, tail, watchChunks } from '@tapedeck/runtime';
import { lastRunStart } from '@tapedeck/runtime/internal';
import { handoff, note, user } from '@tapedeck/tape';
import { readUIMessageStream, tool, type UIMessage, uiMessageChunkSchema } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { entryLines, eventLine, eventsOf, scriptedDeck } from '../support/scripted.ts';
import { slowModel } from '../support/slow-model.ts';
import { openStore } from '../support/store.ts';

const add = tool({
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => a + b,
});
const script = [
  { text: 'I will add.', toolCalls: [{ name: 'add', input: { a: 1, b: 2 }, id: 'c1' }] },
  { text: 'It is 3.' },
];

test('a run is a UI message stream that the AI SDK reads as a message', async () => {
  await using home = await scriptedDeck(script, { tools: { add } });
  const run = (await home.deck.session('main')).run('1 + 2?');
  const chunks = await Array.fromAsync(run.uiStream());
  const { validate } = uiMessageChunkSchema();
  for (const chunk of chunks) expect(await validate?.(chunk)).toMatchObject({ success: true });
  let message: UIMessage | undefined;
  for await (const grown of readUIMessageStream({ stream: run.uiStream() })) message = grown;
  expect(message?.parts.map((part) => part.type)).toEqual([
    'step-start',
    'text',
    'tool-add',
    'step-start',
    'text',
  ]);
  expect(message?.parts[2]).toMatchObject({ state: 'output-available', output: 3 });
});

test('a run streams over HTTP, and a client that leaves does not stop it', async () => {
  const model = slowModel(['One ', 'two ', 'three.'], 20);
  using store = openStore();
  await using deck = await openDeck({ store, model });
  const run = (await deck.session('main')).run('Count');
  const response = await run.toResponse({ headers: { 'x-run': run.id } });
  expect(response.headers.get('x-run')).toBe(run.id);
  const reader = response.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  expect(await run).toMatchObject({ text: 'One two three.', finish: 'stop' });
  // A returning client reads it from the first chunk; the model was called once.
  const texts = (await Array.fromAsync(run.uiStream())).flatMap((c) =>
    c.type === 'text-delta' ? [c.delta] : [],
  );
  expect(texts.join('')).toBe('One two three.');
  expect(model.calls()).toBe(1);
});

test('events arrive at once in this process, and status events with them', async () => {
  await using home = await scriptedDeck([{ text: 'Hi.' }]);
  const main = await home.deck.session('main');
  const stop = new AbortController();
  const told: SessionEvent[] = [];
  const reading = (async () => {
    for await (const event of main.subscribe({ signal: stop.signal })) told.push(event);
  })();
  await main.run('Hello');
  stop.abort();
  await reading;
  const states = told.flatMap((event) => (event.type === 'status-changed' ? [event.status] : []));
  expect(states.map(({ state, phase }) => phase ?? state)).toEqual([
    'processing',
    'processing',
    'streaming',
    'completing',
    'idle',
  ]);
  expect(told.filter(({ type }) => type !== 'status-changed').map(eventLine)).toEqual([
    'run-started',
    'text Hi.',
    'iteration-completed 1',
    'session-completed stop',
  ]);
});

test('the entries of a session are replayed as the events they caused', async () => {
  await using home = await scriptedDeck(script, { tools: { add } });
  const main = await home.deck.session('main');
  const run = main.run('1 + 2?');
  await run;
  const told = (await Array.fromAsync(run.uiStream())).filter(({ type }) => !type.startsWith('data-'));
  const replayed = (await Array.fromAsync(main.replay())).filter(({ type }) => !type.startsWith('data-'));
  const shape = (chunks: readonly { type: string }[]) =>
    chunks.map(({ type }) => type).filter((type) => !/-delta$|^tool-input-start$/.test(type));
  expect(shape(replayed)).toEqual(shape(told));
  const messages = (await Array.fromAsync(main.replay())).filter(({ type }) => type === 'data-message');
  expect(messages).toMatchObject([{ data: { seq: 2, source: 'user', content: [{ text: '1 + 2?' }] } }]);
});

test('rewound entries are not replayed; entries that a boundary hides from the model are', async () => {
  await using home = await scriptedDeck([{ text: 'One.' }, { text: 'Two.' }]);
  const main = await home.deck.session('main');
  await main.run('First');
  home.store.entries.append('main', [handoff('phase-2', { summary: 'One was said.' })]);
  const kept = home.store.sessions.find('main')?.head ?? 0;
  await main.run('Second');
  home.store.history.rewind('main', kept);
  const texts = (await Array.fromAsync(main.replay())).flatMap((c) =>
    c.type === 'text-delta' ? [c.delta] : [],
  );
  expect(texts).toEqual(['One.']);
});

test('a subscription from a position yields recorded events and then live ones, each once', async () => {
  const model = slowModel(['One ', 'two ', 'three.'], 60);
  using store = openStore();
  await using deck = await openDeck({ store, model });
  const main = await deck.session('main');
  await main.run('Count');
  const stop = new AbortController();
  const told: SessionEvent[] = [];
  const reading = (async () => {
    for await (const event of main.subscribe({ from: 1, signal: stop.signal })) told.push(event);
  })();
  await main.run('Again');
  await expect.poll(() => told.filter((e) => e.type === 'iteration-completed').length).toBe(2);
  stop.abort();
  await reading;
  const text = told.flatMap((event) => (event.type === 'content-chunk' ? [event.text] : [])).join('');
  expect(text).toBe('One two three.One two three.');
  // The second answer was reported while it arrived.
  expect(told.filter(({ type }) => type === 'content-chunk').length).toBeGreaterThan(2);
});

test('a tail that begins in the middle of an answer yields all of it, and ends with the run', async () => {
  const model = slowModel(
    Array.from({ length: 20 }, (_, i) => `w${i} `),
    20,
  );
  using store = openStore();
  await using deck = await openDeck({ store, model });
  const main = await deck.session('main');
  const run = main.run('Count');
  await expect.poll(async () => (await store.live.read('main')).length).toBe(1);
  const from = await lastRunStart(store, 'main');
  expect(from).toBe(2);
  const events = await eventsOf(eventsAmong(watchChunks(tail(store, 'main', { from: 2, untilIdle: true }))));
  const text = events.flatMap((event) => (event.type === 'content-chunk' ? [event.text] : [])).join('');
  expect(text).toBe((await run).text);
});

test('a run without input begins with its first answer, not with the run before it', async () => {
  using store = openStore();
  const pieces = Array.from({ length: 20 }, (_, i) => `w${i} `);
  await using deck = await openDeck({ store, model: slowModel(pieces, 20) });
  const main = await deck.session('main');
  await main.run('Count');
  expect(await lastRunStart(store, 'main')).toBe(2);
  const { to } = store.entries.append('main', [note('run/interrupted', {})]);
  const run = main.run();
  await expect.poll(async () => (await store.live.read('main')).length).toBe(1);
  expect(await lastRunStart(store, 'main')).toBe(to + 1);
  await run;
  expect(await lastRunStart(store, 'main')).toBe(to + 1);
});

test('a tail yields entries of other processes in order, and ends on request', async () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('before')]);
  const stop = new AbortController();
  const seqs: number[] = [];
  const reading = (async () => {
    for await (const fresh of tail(store, 'main', { from: 3, signal: stop.signal })) {
      if (fresh.type === 'entry') seqs.push(fresh.entry.seq);
      if (seqs.length === 3) stop.abort();
    }
  })();
  for (const text of ['a', 'b', 'c']) store.entries.append('main', [user(text)]);
  await reading;
  expect(seqs).toEqual([3, 4, 5]);
  expect(entryLines(store.entries.read('main')).slice(1)).toHaveLength(4);
});

test('a subscription from a position yields events in the order of the run itself', async () => {
  await using home = await scriptedDeck(script, { tools: { add } });
  const main = await home.deck.session('main');
  const run = main.run('1 + 2?');
  const live = (await eventsOf(run)).map(eventLine);
  const stop = new AbortController();
  const told: string[] = [];
  for await (const event of main.subscribe({ from: 1, signal: stop.signal })) {
    told.push(eventLine(event));
    if (event.type === 'session-completed') stop.abort();
  }
  const recorded = /^(?:run-started|tool-detected|tool-completed|iteration-completed|session-completed)/;
  expect(told.filter((line) => recorded.test(line))).toEqual(live.filter((line) => recorded.test(line)));
});

test('a subscription from a position reports pending calls as the run itself does', async () => {
  const pay = tool({ inputSchema: z.object({}), needsApproval: true, execute: async () => 'paid' });
  await using home = await scriptedDeck([{ toolCalls: [{ name: 'pay', input: {}, id: 'p1' }] }], {
    tools: { pay },
  });
  const main = await home.deck.session('main');
  const live = (await eventsOf(main.run('Pay'))).map(eventLine);
  const stop = new AbortController();
  const told: SessionEvent[] = [];
  for await (const event of main.subscribe({ from: 1, signal: stop.signal })) {
    told.push(event);
    if (event.type === 'session-completed') stop.abort();
  }
  const recorded = /^(?:run-started|tool-detected|tool-waiting|iteration-completed|session-completed)/;
  expect(told.map(eventLine)).toEqual(live.filter((line) => recorded.test(line)));
  expect(told.at(-2)).toEqual({
    type: 'tool-waiting',
    calls: [
      {
        toolCallId: 'p1',
        name: 'pay',
        input: {},
        for: 'approval',
        claims: ['pay', 'opaque(pay)'],
        offers: ['pay'],
      },
    ],
  });
});

test('a run that cannot begin reports that to the readers of its stream alone', async () => {
  await using home = await scriptedDeck([{ text: 'Hi.', delayMs: 60_000 }]);
  const main = await home.deck.session('main');
  const busy = main.run('One');
  const response = await main.run('Two').toResponse();
  const body = await response.text();
  expect(body).toContain('it is already running');
  busy.abort();
  await busy;
});
