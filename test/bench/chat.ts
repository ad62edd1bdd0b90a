import { join } from 'node:path';
import { type Deck, openDeck } from '@tapedeck/runtime';
import { streamText } from 'ai';
import { gather, median } from './measure.ts';
import { tokens } from './token-model.ts';
import { type Bench, compared, counted, type Row } from './topic.ts';

const readersAtOnce = 50;

/** The endpoint for chats against the AI SDK alone, with the same model: many readers, many runs, and the first token. */
export async function chat(bench: Bench): Promise<Row[]> {
  const count = bench.size(400, 10);
  const rate = 200;
  const many = bench.size(readersAtOnce, 3);
  const rounds = bench.size(5, 2);
  const model = tokens(count, rate);
  await using deck = await openDeck({
    home: join(bench.dir, 'chat'),
    model,
    chat: { authorize: () => ({ prefix: 'chat.' }) },
  });
  let chats = 0;
  const bare = async () => await read(streamText({ model, prompt: 'Go' }).textStream);
  const times = await gather(
    {
      readers: async () =>
        await microseconds(async () => {
          chats += 1;
          const id = `c${chats}`;
          const first = await send(deck, id);
          const others = Array.from({ length: many - 1 }, async () => await resume(deck, id));
          await Promise.all([read(first.body), ...others]);
        }),
      runs: async () =>
        await microseconds(async () => {
          const sent = Array.from({ length: many }, async () => {
            chats += 1;
            await read((await send(deck, `c${chats}`)).body);
          });
          await Promise.all(sent);
        }),
      one: async () => await microseconds(bare),
      all: async () =>
        await microseconds(async () => void (await Promise.all(Array.from({ length: many }, bare)))),
    },
    rounds,
  );
  return [
    compared(times.readers, times.one, {
      work: `run of ${count} tokens at ${rate} tokens/s, read by ${many} chats to its last token`,
      against: 'the AI SDK alone, one reader',
      goal: { most: 1.1 },
      unit: 'ms',
    }),
    compared(times.runs, times.all, {
      work: `${many} such runs at once, read by a chat each`,
      against: 'the AI SDK alone, as many at once',
      // Each begins with five waits for the disk, one after another: see docs/performance.md.
      goal: { most: 1.15 },
      unit: 'ms',
    }),
    await firstToken(deck, bench),
  ];
}

/** How much later a chat gets its first token than a program that calls the model itself. */
async function firstToken(deck: Deck, bench: Bench): Promise<Row> {
  const model = tokens(1, Number.POSITIVE_INFINITY);
  const session = await deck.session('chat.first', {});
  let sent = 0;
  const { ours, bare } = await gather(
    {
      ours: async () => {
        sent += 1;
        await session.idle();
        await session.handoff(`h${sent}`);
        return await microseconds(async () => {
          const { body } = await send(deck, 'first', `first-${sent}`);
          for await (const text of decoded(body)) if (text.includes('text-delta')) break;
        });
      },
      bare: async () =>
        await microseconds(async () => {
          for await (const _ of streamText({ model, prompt: 'Go' }).textStream) break;
        }),
    },
    bench.size(41, 2),
  );
  return counted((median(ours) - median(bare)) / 1000, 5, {
    work: 'first token through the endpoint, beyond that of the AI SDK alone',
    against: 'a budget of 5 ms',
    goal: { most: 1 },
    unit: 'ms',
  });
}

async function send(deck: Deck, id: string, message: string = id): Promise<Response> {
  const parts = [{ type: 'text', text: 'Go' }];
  return await deck.fetch(
    new Request('http://localhost/api/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id, message: { id: message, role: 'user', parts } }),
    }),
  );
}

async function resume(deck: Deck, id: string): Promise<void> {
  await read((await deck.fetch(new Request(`http://localhost/api/chat/${id}/stream`))).body);
}

function decoded(body: ReadableStream<Uint8Array> | null): AsyncIterable<string> {
  return (body ?? ReadableStream.from<Uint8Array>([])).pipeThrough(
    new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>,
  );
}

async function read(stream: AsyncIterable<unknown> | null): Promise<void> {
  for await (const _ of stream ?? []);
}

async function microseconds(act: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await act();
  return (performance.now() - start) * 1000;
}
