import { expect, test } from 'vitest';
import { startProcess } from '../support/process.ts';
import { sized } from '../support/size.ts';

/** A deck whose sessions each run once, in a process of its own: it prints what the garbage collector leaves. */
const program = `
  import { openDeck } from '@tapedeck/runtime';
  import { openTapeStore } from '@tapedeck/tape';
  import { setTimeout as sleep } from 'node:timers/promises';
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';

  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const usage = { inputTokens: { total: 1, noCache: 1 }, outputTokens: { total: 1, text: 1 } };
  const parts = (text) => [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: text },
    { type: 'text-end', id: 't' },
    { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage },
  ];
  const answers = (text) => ({
    specificationVersion: 'v4', provider: 'test', modelId: 'test', supportedUrls: {},
    doGenerate: async () => { throw new Error('it only streams'); },
    doStream: async () => {
      if (text === undefined) throw new Error('no answer');
      return { stream: ReadableStream.from(parts(text)) };
    },
  });
  const model = answers('Done.');
  const fails = answers(undefined);
  const store = openTapeStore(':memory:');
  const deck = await openDeck({ store, model: 'script:none.json' });

  const held = await deck.session('held');
  const unread = held.subscribe();
  let runs = 0;
  const [program, user] = [new AbortController(), new AbortController()];
  /**
   * A session that runs once, with a signal that is never aborted; of each ten, one fails, and one has a subscriber that
   * reads nothing and leaves; of each twenty, one delegates.
   */
  const once = async () => {
    runs += 1;
    const session = await deck.session('s-' + runs);
    const subscriber = runs % 10 === 1 ? session.subscribe()[Symbol.asyncIterator]() : undefined;
    const delegates = runs % 20 === 1;
    const signal = runs % 2 === 0 ? program.signal : AbortSignal.any([program.signal, user.signal]);
    await session.run('Go', { model: runs % 10 === 0 ? fails : model, signal });
    if (delegates) await session.delegate('Check', { inherit: 'nothing', model });
    await subscriber?.return();
  };
  const upTo = async (count) => {
    while (runs < count) await Promise.all(Array.from({ length: Math.min(20, count - runs) }, once));
    await deck.idle();
  };
  const heap = async () => {
    let least = Infinity;
    for (let i = 0; i < 5; i += 1) {
      await sleep(100);
      collect();
      least = Math.min(least, process.memoryUsage().heapUsed);
    }
    return least;
  };

  const [few, many] = process.argv.slice(1).map(Number);
  await upTo(few);
  const before = await heap();
  await upTo(many);
  const after = await heap();

  // The chunks of a run are kept for its readers, and go with it.
  const large = answers('x'.repeat(4_000_000));
  let run = held.run('Go', { model: large, signal: AbortSignal.any([program.signal, user.signal]) });
  const kept = new WeakRef(run);
  const { text, finish } = await run;
  run = undefined;
  const rest = await heap();
  const isKept = kept.deref() !== undefined;
  let subscribed;
  for await (const event of unread) if (event.type === 'session-completed') { subscribed = event.finish; break; }
  console.log('FOUND ' + JSON.stringify({ before, after, rest, isKept, finish, length: text.length, subscribed }));
  await deck.close();
  store.close();
`;

const [few, many] = sized([1_000, 4_000], [1_000, 2_500], [1_000, 100_000]);

test(`after ${many} sessions, each run once, a deck needs the memory that it needed after ${few}`, async () => {
  await using running = startProcess(program, `${few}`, `${many}`);
  await running.done();
  const [, found = ''] = /FOUND (.*)/.exec(running.printed()) ?? [];
  const { before, after, rest, ...others } = JSON.parse(found);
  // A worker for each session that ran would be 1.6 KB.
  expect((after - before) / (many - few)).toBeLessThan(sized(500, 300, 20));
  // Neither the deck nor the session that ran keeps a run, and what its subscriber did not read is bounded.
  expect(rest - after).toBeLessThan(10_000_000);
  expect(others).toEqual({
    isKept: false,
    finish: 'stop',
    length: 4_000_000,
    subscribed: 'stop',
  });
}, 600_000);
