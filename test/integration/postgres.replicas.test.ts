import { openDeck } from '@tapedeck/runtime';
import { user } from '@tapedeck/tape';
import { DefaultChatTransport, type UIMessage } from 'ai';
import { expect, test } from 'vitest';
import { serveChats, TestChat } from '../support/chat.ts';
import { serverPlace } from '../support/postgres.ts';
import { startProcess } from '../support/process.ts';
import { startProvider } from '../support/provider.ts';

/** A page behind a balancer, which sends its requests to one replica and, when that is gone, to another. */
function page(first: string, messages: UIMessage[] = []) {
  let replica = first;
  const fetch: typeof globalThis.fetch = async (input, init) =>
    await globalThis.fetch(String(input).replace('http://deck.test/api/chat', replica), init);
  const transport = new DefaultChatTransport({ api: 'http://deck.test/api/chat', fetch });
  return {
    chat: new TestChat({ id: 'main', transport, messages }),
    moveTo: (next: string) => {
      replica = next;
    },
  };
}

const textOf = ({ lastMessage }: TestChat) =>
  (lastMessage?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');

test('a client whose replica is gone attaches to another, and has the whole stream once', async () => {
  const words = Array.from({ length: 40 }, (_, i) => `word${i} `);
  const half = Promise.withResolvers<void>();
  await using provider = await startProvider(() => ({ text: words, pauseMs: 20, half: half.promise }));
  await using place = await serverPlace();
  await using stack = new AsyncDisposableStack();
  const replica = async () => {
    const store = stack.use(await place.open({ connections: 3 }));
    const deck = stack.use(
      await openDeck({ store, model: 'openai-compatible/test-model', env: provider.env }),
    );
    return { deck, server: stack.use(await serveChats(deck)) };
  };
  const [writer, first, second] = [await replica(), await replica(), await replica()];
  const main = await writer.deck.session('main');
  const run = main.run('Count');
  await expect.poll(async () => (await main.uiMessages()).length).toBe(1);
  const { chat, moveTo } = page(first.server.api, await main.uiMessages());
  const reading = chat.resumeStream();
  await expect.poll(() => textOf(chat)).toContain('word3 ');
  await first.server[Symbol.asyncDispose]();
  await reading;
  expect(chat.status).toBe('error');
  expect(textOf(chat)).not.toContain('word39');
  moveTo(second.server.api);
  const response = await second.server.ask('/main/stream');
  const resuming = chat.resumeStream();
  // It arrives while the model still answers.
  await expect.poll(() => textOf(chat)).toContain('word12 ');
  expect(textOf(chat)).not.toContain('word39');
  half.resolve();
  await resuming;
  expect(await run).toMatchObject({ finish: 'stop', text: words.join('') });
  expect(chat.plain).toEqual(await main.uiMessages());
  expect(textOf(chat)).toBe(words.join(''));
  const chunks = (await response.text())
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice('data: '.length)) as { type: string; delta?: string });
  const deltas = chunks.flatMap(({ type, delta = '' }) => (type === 'text-delta' ? [delta] : []));
  expect(deltas.join('')).toBe(words.join(''));
  expect(deltas.length).toBeGreaterThan(5);
  const frame = ['start', 'start-step', 'text-start', 'text-end', 'finish-step', 'finish'];
  expect(chunks.map(({ type }) => type).filter((type) => frame.includes(type))).toEqual(frame);
});

const replicaProgram = `
  import { createServer } from 'node:http';
  import { chatHandler, nodeListener, openDeck } from '@tapedeck/runtime';
  import { postgres } from '@tapedeck/tape/postgres';
  const [home, url] = process.argv.slice(1);
  const env = { OPENAI_BASE_URL: url, OPENAI_API_KEY: 'test-key' };
  const deck = await openDeck({ store: await postgres(home), model: 'openai-compatible/test-model', env });
  const server = createServer(nodeListener(chatHandler(deck, { sessions: ['main'] })));
  server.listen(0, '127.0.0.1', () => console.log('at http://127.0.0.1:' + server.address().port + '/api/chat'));
`;

test('the answer of a replica that is killed goes on in another, and all clients have it once', async () => {
  await using provider = await startProvider((_, index) =>
    index === 0 ? { text: ['I ', 'think '], hang: true } : { text: ['So ', 'it ', 'is.'], pauseMs: 300 },
  );
  await using place = await serverPlace();
  await using killed = startProcess(replicaProgram, place.url, provider.url);
  await using other = startProcess(replicaProgram, place.url, provider.url);
  await Promise.all([killed.prints('at http'), other.prints('at http')]);
  const apiOf = (printed: string) => /at (\S+)/.exec(printed)?.[1] ?? '';
  await using store = await place.open();
  await using deck = await openDeck({ store, model: 'openai-compatible/test-model', env: provider.env });
  await using third = await serveChats(deck);

  const { chat, moveTo } = page(apiOf(killed.printed()));
  const sending = chat.sendMessage({ text: 'Well?' });
  await expect.poll(() => textOf(chat)).toContain('think');
  await expect.poll(async () => JSON.stringify(await store.live.read('main'))).toContain('think');
  // Two other pages read the answer at the replicas that stay: both want to let it go on.
  const watching = [apiOf(other.printed()), third.api].map((api) => page(api, chat.plain.slice(0, 1)).chat);
  const watched = watching.map((one) => one.resumeStream());
  for (const one of watching) await expect.poll(() => textOf(one)).toContain('think');
  await killed.kill();
  await sending;
  expect(chat.status).toBe('error');
  moveTo(apiOf(other.printed()));
  await Promise.all([chat.resumeStream(), ...watched]);

  const main = await deck.session('main');
  const messages = await main.uiMessages();
  expect(messages).toHaveLength(2);
  expect(textOf(chat)).toBe('I think So it is.');
  for (const one of [chat, ...watching]) expect(one.plain).toEqual(messages);
  expect(provider.requests).toHaveLength(2);
  expect(await Array.fromAsync(store.verify())).toEqual([]);
});

test('the answer of a replica on a machine that is gone goes on when its lease has ended', async () => {
  await using provider = await startProvider(() => ({ text: ['So ', 'it ', 'is.'] }));
  await using place = await serverPlace();
  await using store = await place.open();
  await using deck = await openDeck({ store, model: 'openai-compatible/test-model', env: provider.env });
  await using server = await serveChats(deck);
  const main = await deck.session('main');
  // What the other machine has left: its run, what it had saved of the answer, and a lease.
  const owner = { id: 'gone', pid: 1, pidStart: '1', bootId: 'other', host: 'other.example.org' };
  const lease = await store.leases.acquire(main.id, owner, { ttlMs: 600_000 });
  await store.entries.append(main.id, [{ ...user('Well?'), meta: { run: 'killed' } }], { lease });
  const chunks = [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'I think ' },
  ].map((chunk, index) => ({ index, chunk }));
  await store.live.save([{ session: main.id, run: 'killed', chunks }]);
  const { chat } = page(server.api, await main.uiMessages());
  const reading = chat.resumeStream();
  await expect.poll(() => textOf(chat)).toBe('I think ');
  expect(provider.requests).toHaveLength(0);
  // Its last heartbeat: no other follows.
  await store.leases.extend(lease, { ttlMs: 1 });
  await reading;
  expect(textOf(chat)).toBe('I think So it is.');
  expect(chat.plain).toEqual(await main.uiMessages());
  expect(provider.requests).toHaveLength(1);
});
