import type { Deck, DeckOptions, RunEngine, RunSpec } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { eventsOf, scriptedDeck } from '../support/scripted.ts';

const keyOf = (session: string, message = '') => `${session} ${message}`;

/**
 * A deck that starts children, and another on the same store that runs them, as two processes have them: what goes from one
 * to the other is JSON.
 */
async function twoDecks(
  answers: readonly ScriptAnswer[],
  ofWorker: Omit<DeckOptions, 'store'> = {},
  ofHome: Omit<DeckOptions, 'store'> = {},
) {
  const started: RunSpec[] = [];
  const running = new Map<string, AbortController>();
  const work: { handler?: (run: RunSpec, signal: AbortSignal) => Promise<void> } = {};
  const runs = new Set<Promise<void>>();
  const take = (run: RunSpec) => {
    const controller = new AbortController();
    const key = keyOf(run.order?.session ?? run.id, run.order?.message?.key);
    running.set(key, controller);
    const done = (work.handler?.(run, controller.signal) ?? Promise.resolve()).finally(() => {
      running.delete(key);
      runs.delete(done);
    });
    runs.add(done);
    return done;
  };
  const gate = { isOpen: true };
  const engine: RunEngine = {
    isElsewhere: true,
    start: async (given) => {
      const run = JSON.parse(JSON.stringify(given)) as RunSpec;
      started.push(run);
      const key = keyOf(run.order?.session ?? run.id, run.order?.message?.key);
      if (gate.isOpen && !running.has(key)) void take(run);
    },
    work: async () => {},
    cancel: async (session, message) =>
      running.get(keyOf(session, message))?.abort(new Error('aborted by parent')),
    stop: async () => {},
  };
  const home = await scriptedDeck(answers, { ...ofHome, engine });
  const worker = await openDeck({
    model: home.spec,
    ...ofWorker,
    store: home.store,
    engine: {
      ...engine,
      work: async (handler) => {
        work.handler = handler;
      },
      stop: async () => void (await Promise.all(runs)),
    },
  });
  const main = await home.deck.session('main');
  const close = home[Symbol.asyncDispose].bind(home);
  return Object.assign(home, {
    main,
    engine,
    started,
    gate,
    take,
    worker: worker as Deck,
    [Symbol.asyncDispose]: async () => {
      await worker.close();
      await close();
    },
  });
}

const marks = (store: { entries: { read(ref: string, q: object): Iterable<{ name?: string }> } }) =>
  [...store.entries.read('main', { namePrefix: 'merge/' })].map(({ name }) => name);

test('children run where the engine has them run, with the tools of that place, and are merged once', async () => {
  const look = tool({ inputSchema: z.object({}), execute: async () => 'seen there' });
  await using home = await twoDecks(
    [
      { when: { text: 'task a' }, toolCalls: [{ name: 'look', input: {} }] },
      { when: { text: 'task a' }, text: 'answer a' },
      { when: { text: 'task b' }, error: 'no answer' },
    ],
    { tools: { look } },
  );
  const delegation = home.main.delegate([
    { task: 'task a', name: 'a' },
    { task: 'task b', name: 'b', priority: 2 },
  ]);
  await delegation.started;
  expect(home.started).toHaveLength(2);
  const events = await eventsOf(delegation);
  // Whether the process that ran a child or this one merged it: it is the merge of this delegation.
  expect((await delegation).map(({ status, text, merged }) => [status, text, merged?.repeated])).toEqual([
    ['completed', 'answer a', false],
    ['failed', expect.stringContaining('no answer'), false],
  ]);
  expect(home.started).toMatchObject([
    { id: 'a', parent: 'main', depth: 1, order: { session: expect.any(String) } },
    { id: 'b', priority: 2 },
  ]);
  expect(events.map(({ type }) => type).toSorted()).toEqual([
    ...['child-ended', 'child-ended', 'child-forked', 'child-forked', 'child-merged', 'child-merged'],
  ]);
  expect(marks(home.store).toSorted()).toEqual(['merge/a', 'merge/b']);
  const results = await Array.fromAsync(home.store.entries.read('a', { kind: 'tool-result' }));
  expect(JSON.stringify(results)).toContain('seen there');
});

test('aborting a delegation ends what runs elsewhere, and what no worker has begun', async () => {
  await using home = await twoDecks([{ when: { text: 'task' }, text: 'late', delayMs: 60_000 }]);
  home.gate.isOpen = false;
  const delegation = home.main.delegate([
    { task: 'task a', name: 'a' },
    { task: 'task b', name: 'b' },
  ]);
  await delegation.forked;
  await expect.poll(() => home.started.length).toBe(2);
  const [first, second] = home.started;
  if (first === undefined || second === undefined) throw new TypeError('two were started');
  const ran = home.take(first);
  await expect.poll(() => home.store.leases.list().length).toBe(1);
  delegation.abort();
  expect((await delegation).map(({ status }) => status)).toEqual(['aborted', 'aborted']);
  await ran;
  // The worker that takes the job now finds that there is nothing to do.
  await home.take(second);
  expect(home.store.sessions.find('b')).toMatchObject({ task: 'aborted', delivery: 'merged' });
  expect(marks(home.store)).toHaveLength(2);
});

test('a child that is resumed elsewhere takes its message once, however often it is started', async () => {
  await using home = await twoDecks([{ text: 'first' }, { text: 'second' }]);
  await home.main.delegate({ task: 'Begin', name: 'child' });
  const [outcome] = await home.main.delegate({ task: 'Go on', resume: 'child', key: 'again' });
  expect(outcome).toMatchObject({ status: 'completed', text: 'second' });
  const last = home.started.at(-1);
  if (last === undefined) throw new TypeError('one was started');
  await home.take(last);
  const texts = [...home.store.entries.read('child', { own: true, kind: 'message' })];
  expect(texts.filter(({ payload }) => JSON.stringify(payload).includes('Go on'))).toHaveLength(1);
});

test('a resume that the process of the child cannot begin is a failure, written once', async () => {
  await using home = await twoDecks([{ text: 'first' }]);
  await home.main.delegate({ task: 'Begin', name: 'child' });
  const [outcome] = await home.main.delegate({ task: 'Go on', resume: 'child', model: 'openai/gpt-5' });
  expect(outcome).toMatchObject({ status: 'failed', error: expect.stringContaining('OPENAI_API_KEY') });
  const own = [...home.store.entries.read('child', { own: true })];
  expect(own.filter(({ name }) => name === 'run/error')).toHaveLength(1);
  expect(own.filter(({ payload }) => JSON.stringify(payload).includes('Go on'))).toHaveLength(1);
  // Its run does not begin when the job comes again.
  const last = home.started.at(-1);
  if (last === undefined) throw new TypeError('one was started');
  await home.take(last);
  expect(home.store.sessions.find('child')).toMatchObject({ task: 'failed', head: own.at(-1)?.seq });
});

test('aborting a resume that is queued ends the child, and the message is not done later', async () => {
  await using home = await twoDecks([{ text: 'first' }, { text: 'never' }]);
  await home.main.delegate({ task: 'Begin', name: 'child' });
  home.gate.isOpen = false;
  const delegation = home.main.delegate({ task: 'Go on', resume: 'child', key: 'again' });
  await delegation.started;
  delegation.abort();
  expect(await delegation).toMatchObject([{ status: 'aborted' }]);
  const last = home.started.at(-1);
  if (last === undefined) throw new TypeError('one was started');
  await home.take(last);
  expect(home.store.sessions.find('child')).toMatchObject({ task: 'aborted' });
  expect(JSON.stringify([...home.store.entries.read('child', { own: true })])).not.toContain('never');
});

test('an abort ends the run that it is about, and not another one of the same child', async () => {
  await using home = await twoDecks([{ text: 'first' }, { text: 'late', delayMs: 500 }, { text: 'last' }]);
  await home.main.delegate({ task: 'Begin', name: 'child' });
  const run = home.main.delegate({ task: 'Go on', resume: 'child', key: 'one' });
  await expect.poll(() => home.store.leases.list().length).toBe(1);
  // The same child from another process: its worker waits until the first has ended.
  await using other = await openDeck({ store: home.store, engine: home.engine });
  const queued = (await other.session('main')).delegate({ task: 'Stop', resume: 'child', key: 'two' });
  await queued.started;
  queued.abort();
  expect(await queued).toMatchObject([{ status: 'aborted' }]);
  await run;
  const own = [...home.store.entries.read('child', { own: true })];
  const [late] = own.filter(({ payload }) => JSON.stringify(payload).includes('late'));
  expect(late?.meta).toMatchObject({ finish: 'stop' });
  const at = own.findIndex(({ payload }) => JSON.stringify(payload).includes('Stop'));
  expect(own.slice(at).map(({ name }) => name)).toContain('run/aborted');
});

test('a child that names a tool which its process does not have fails, and says which', async () => {
  const look = tool({ inputSchema: z.object({}), execute: async () => '' });
  await using home = await twoDecks([{ text: 'Done.' }], {}, { tools: { look } });
  const [outcome] = await home.main.delegate({ task: 'Look', name: 'child', tools: ['look'] });
  expect(outcome).toMatchObject({ status: 'failed', error: expect.stringContaining("with tool 'look'") });
});

test('the tools of MCP servers may be named before they are known', async () => {
  const mcpServers = { files: { command: 'true' } };
  await using home = await twoDecks([{ text: 'Done.' }], { mcpServers }, { mcpServers });
  const [outcome] = await home.main.delegate({ task: 'Look', name: 'child', tools: ['mcp_files_read'] });
  expect(outcome).toMatchObject({ status: 'completed', text: 'Done.' });
});

test('a delegation that is done again queues nothing for children that have ended', async () => {
  await using home = await twoDecks([{ text: 'first' }, { text: 'second' }]);
  const again = async () => {
    await home.main.delegate({ task: 'Begin', name: 'child', key: 'one' });
    return await home.main.delegate({ task: 'Go on', resume: 'child', key: 'two' });
  };
  await again();
  expect(home.started).toHaveLength(2);
  expect(await again()).toMatchObject([{ status: 'completed', text: 'second' }]);
  expect(home.started).toHaveLength(2);
});

test('a child that waits for an answer elsewhere is waited for no longer', async () => {
  const risky = tool({ inputSchema: z.object({}), execute: async () => 'done', needsApproval: true });
  await using home = await twoDecks([{ toolCalls: [{ name: 'risky', input: {} }] }], { tools: { risky } });
  const [outcome] = await home.main.delegate({ task: 'Dare', name: 'child' });
  expect(outcome).toMatchObject({ status: 'running', waits: true });
});

test('a deck that closes leaves its children to those that run them, who merge them', async () => {
  await using home = await twoDecks([{ text: 'late', delayMs: 300 }]);
  const delegation = home.main.delegate({ task: 'task', name: 'child' });
  await expect.poll(() => home.store.leases.list().length).toBe(1);
  await home.deck.close();
  expect(await delegation).toMatchObject([{ status: 'running', merged: undefined }]);
  await expect.poll(() => home.store.sessions.find('child')?.delivery).toBe('merged');
});

test('what another process cannot have is refused before anything is forked', async () => {
  await using home = await twoDecks([]);
  const look = tool({ inputSchema: z.object({}), execute: async () => '' });
  await expect(home.main.delegate('Look', { tools: { look } })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringContaining('name the tools'),
  });
  await expect(home.main.delegate('Look', { workspace: 'worktree' })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringContaining('workers can be on others'),
  });
  await expect(home.main.delegate({ task: 'Look', resume: 'main' })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
  expect(home.store.sessions.list({ parent: 'main', all: true })).toEqual([]);
});

test('a home in a file commits nothing beside a fork', async () => {
  await using home = await twoDecks([]);
  expect(() => home.store.lineage.fork('main', {}, () => ({ sql: 'SELECT 1', values: [] }))).toThrow(
    'a database in a file has no other tables',
  );
  expect(home.store.sessions.list({ parent: 'main', all: true })).toEqual([]);
});
