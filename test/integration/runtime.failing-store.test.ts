import type { DeckTools } from '@tapedeck/runtime';
import { TapeError } from '@tapedeck/tape';
import { onCrashPoint } from '@tapedeck/tape/crash-point';
import { tool } from 'ai';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { diskFault, obstacles, smallDisk } from '../support/obstacle.ts';
import { startProvider } from '../support/provider.ts';
import { nextAnswer } from '../support/run-crash.ts';
import { entryLines } from '../support/scripted.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

afterEach(() => onCrashPoint(undefined));

/** Tools that report which calls they run for. */
function toolsOf(act: (id: string) => void): DeckTools {
  const acting = {
    inputSchema: z.object({}),
    execute: async (_: unknown, { toolCallId }: { toolCallId: string }) => {
      act(toolCallId);
      return `did ${toolCallId}`;
    },
  };
  return {
    write: tool(acting),
    read: tool(acting),
    pay: tool({ ...acting, needsApproval: true }),
    fail: tool({
      ...acting,
      execute: async (): Promise<string> => {
        throw new Error('no disk');
      },
    }),
  };
}

test('a store that fails at any write stops the run with its error, and the run writes nothing until it recovers', {
  timeout: 300_000,
}, async () => {
  await using provider = await startProvider(nextAnswer);
  const session = async (failAt: number) => {
    using home = tempHome();
    const ran: string[] = [];
    let writes = 0;
    const late: string[] = [];
    let asked: number | undefined;
    await using deck = await openDeck({
      store: home.open(),
      tools: toolsOf((id) => {
        ran.push(id);
        if (asked !== undefined) late.push(id);
      }),
      // Those that wait for their turn are many, then.
      limits: { concurrentTools: 1 },
      model: 'openai-compatible/test-model',
      env: provider.env,
      onApproval: () => ({ approved: true }),
    });
    const main = await deck.session('main');
    onCrashPoint((point) => {
      if (point !== 'commit/before') return;
      writes += 1;
      // From then on every write fails, as on a disk that is full.
      if (writes === failAt) asked = provider.requests.length;
      if (asked !== undefined) throw new TapeError('TAPE_IO', 'cannot write: the disk is full');
    });
    const run = main.run('Go');
    const failure = await run.then(
      () => undefined,
      (error: unknown) => error,
    );
    onCrashPoint(undefined);
    if (failure === undefined) return writes;
    expect(failure, `write ${failAt}`).toMatchObject({ code: 'TAPE_IO' });
    expect(late, `after write ${failAt}`).toEqual([]);
    // A request in flight may arrive; no other follows.
    expect(provider.requests.length - (asked ?? 0)).toBeLessThanOrEqual(1);
    asked = undefined;
    // Every call that a tool ran for is on the tape.
    const tape = JSON.stringify(await Array.fromAsync(main.entries()));
    expect(ran.filter((id) => !tape.includes(`"toolCallId":"${id}"`))).toEqual([]);
    // The lease of the run that failed is given back as soon as that can be done.
    expect(await main.run('And then?'), `write ${failAt}`).toMatchObject({ finish: 'stop' });
    expect(new Set(ran).size).toBe(ran.length);
    expect(await Array.fromAsync(deck.store.verify())).toEqual([]);
    expect(await main.status()).toMatchObject({ state: 'idle', waiting: [], queued: 0 });
    return undefined;
  };
  let all: number | undefined;
  let failed = 0;
  for (let failAt = 1; all === undefined; failAt += sized(8, 6, 1)) {
    all = await session(failAt);
    if (all === undefined) failed += 1;
  }
  expect(failed).toBeGreaterThan(sized(2, 3, 20));
  expect(provider.refusals).toEqual([]);
});

const fault = (() => {
  using dir = tempDir();
  return diskFault(dir.path);
})();
if (fault !== undefined) console.warn(`skipped: a disk that is full in the midst of a run; ${fault}`);

test.skipIf(fault !== undefined)(
  'a disk that fills up during a run stops the run, and the session continues when the disk has room',
  async () => {
    await using provider = await startProvider((request) =>
      request.messages.some(({ role }) => role === 'tool')
        ? { text: 'There was no room.' }
        : {
            calls: [
              { id: 'c1', name: 'fill', arguments: {} },
              { id: 'c2', name: 'fill', arguments: {} },
            ],
          },
    );
    using dir = tempDir();
    using disk = smallDisk(dir.path);
    let fills = 0;
    const fill = tool({
      inputSchema: z.object({}),
      execute: async () => {
        fills += 1;
        obstacles.ENOSPC.put(disk.path);
        return 'x'.repeat(200_000);
      },
    });
    await using deck = await openDeck({
      home: disk.path,
      tools: { fill },
      model: 'openai-compatible/test-model',
      env: provider.env,
    });
    const main = await deck.session('main');
    await expect(main.run('Fill')).rejects.toMatchObject({ code: 'TAPE_IO' });
    expect(fills).toBe(1);
    obstacles.ENOSPC.lift(disk.path);
    expect(await main.run('What happened?')).toMatchObject({ finish: 'stop' });
    expect(entryLines(await Array.fromAsync(main.entries())).slice(2)).toEqual([
      'assistant: [fill c1] [fill c2]',
      expect.stringContaining('fill c1 → error-text Outcome unknown'),
      expect.stringContaining('fill c2 → error-text Outcome unknown'),
      'user: What happened?',
      'assistant: There was no room.',
    ]);
    expect(fills).toBe(1);
    expect(provider.refusals).toEqual([]);
  },
);
