import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { chatHandler, nodeListener } from '@tapedeck/runtime';
import { expect, test } from 'vitest';
import { keptMemory } from '../support/kept-memory.ts';
import { scriptedDeck } from '../support/scripted.ts';

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};
const pieces = 220;
const readers = 4;

/** A model that answers with pieces of 64 KiB, the first of which comes before the gate opens. */
function largeModel(gate: Promise<void>): LanguageModelV4 {
  async function* parts(): AsyncGenerator<LanguageModelV4StreamPart> {
    yield { type: 'stream-start', warnings: [] };
    yield { type: 'text-start', id: 't' };
    for (let i = 0; i < pieces; i += 1) {
      yield { type: 'text-delta', id: 't', delta: 'x'.repeat(65_536) };
      await gate;
    }
    yield { type: 'text-end', id: 't' };
    yield { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage };
  }
  return {
    specificationVersion: 'v4',
    provider: 'large',
    modelId: 'large',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('it only streams')),
    doStream: async () => ({ stream: ReadableStream.from(parts()) }),
  };
}

test('clients that never read leave the run alone, and what waits for them is bounded', async () => {
  await using home = await scriptedDeck([]);
  const main = await home.deck.session('main');
  const accepted: Socket[] = [];
  const gate = Promise.withResolvers<void>();
  const model = largeModel(gate.promise);
  const server = createServer(nodeListener(chatHandler(home.deck, { sessions: ['main'], run: { model } })));
  server.on('connection', (socket) => accepted.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const clients: Socket[] = [];
  const ask = (head: string, body = '') => {
    const socket = connect(port, '127.0.0.1').pause();
    clients.push(socket);
    const type = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}`;
    socket.write(`${head} HTTP/1.1\r\nhost: localhost\r\n${type}\r\n\r\n${body}`);
  };
  const before = keptMemory().arrayBuffers;
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go' }] };
  ask('POST /api/chat', JSON.stringify({ id: 'main', messages: [message] }));
  await expect.poll(() => main.attach() !== undefined).toBe(true);
  for (let i = 1; i < readers; i += 1) ask('GET /api/chat/main/stream');
  await expect.poll(() => accepted.length).toBe(readers);
  gate.resolve();
  await expect.poll(async () => (await main.status()).state).toBe('idle');
  const answer = JSON.stringify(await main.uiMessages()).length;
  expect(answer).toBeGreaterThan(pieces * 65_536);
  for (const socket of accepted) expect(socket.writableLength).toBeLessThan(1_000_000);
  expect(keptMemory().arrayBuffers - before).toBeLessThan(readers * 1_000_000);
  for (const client of clients) client.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
