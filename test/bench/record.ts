import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { type Deck, openDeck } from '@tapedeck/runtime';
import { streamText } from 'ai';
import { gather } from './measure.ts';
import { type Bench, compared, type Row } from './topic.ts';

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

/** A model that answers with this many tokens, at a rate or as fast as they are read. */
function tokens(count: number, perSecond: number): LanguageModelV4 {
  async function* parts(): AsyncGenerator<LanguageModelV4StreamPart> {
    yield { type: 'stream-start', warnings: [] };
    yield { type: 'text-start', id: 't' };
    const start = performance.now();
    for (let i = 0; i < count; i += 1) {
      const due = start + (i * 1000) / perSecond;
      if (due > performance.now()) await sleep(due - performance.now());
      yield { type: 'text-delta', id: 't', delta: `token${i} ` };
    }
    yield { type: 'text-end', id: 't' };
    yield { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage };
  }
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('it only streams')),
    doStream: async () => ({ stream: ReadableStream.from(parts()) }),
  };
}

/** What recording a streamed run costs, against the AI SDK alone with the same model: the last token's time. */
export async function record(bench: Bench): Promise<Row[]> {
  await using deck = await openDeck({ home: join(bench.dir, 'record') });
  return [
    await streamed(deck, {
      rate: 200,
      count: bench.size(400, 20),
      rounds: bench.size(7, 2),
      goal: 1.05,
    }),
    await streamed(deck, {
      rate: Number.POSITIVE_INFINITY,
      count: bench.size(20_000, 200),
      rounds: bench.size(9, 2),
      goal: 2,
    }),
  ];
}

interface Stream {
  readonly rate: number;
  readonly count: number;
  readonly rounds: number;
  readonly goal: number;
}

async function streamed(deck: Deck, { rate, count, rounds, goal }: Stream): Promise<Row> {
  const model = tokens(count, rate);
  let runs = 0;
  const { recorded, bare } = await gather(
    {
      // Each run has a session of its own: a growing one would be another prompt.
      recorded: async () => {
        runs += 1;
        const session = await deck.session(`${rate}-${runs}`);
        return await microseconds(async () => {
          for await (const _text of session.run('Go', { model }).textStream());
        });
      },
      bare: async () =>
        await microseconds(async () => {
          for await (const _text of streamText({ model, prompt: 'Go' }).textStream);
        }),
    },
    rounds,
  );
  const pace = Number.isFinite(rate) ? `at ${rate} tokens/s` : 'at full speed';
  return compared(recorded, bare, {
    work: `streamed run of ${count} tokens ${pace}, recorded`,
    against: 'the AI SDK alone, same model',
    goal: { most: goal },
    unit: 'ms',
  });
}

async function microseconds(act: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await act();
  return (performance.now() - start) * 1000;
}
