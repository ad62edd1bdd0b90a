import { join } from 'node:path';
import { type Deck, openDeck } from '@tapedeck/runtime';
import { streamText } from 'ai';
import { gather } from './measure.ts';
import { tokens } from './token-model.ts';
import { type Bench, compared, type Row } from './topic.ts';

/** The cost of recording a streamed run, against the AI SDK alone with the same model: the last token's time. */
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
