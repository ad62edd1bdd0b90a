import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { faultPlace, openFaultStore } from '../support/fault-acts.ts';
import { damage } from '../support/fault-check.ts';
import { type LoopDisk, loopDisk, loopFault } from '../support/loop-device.ts';
import { program } from '../support/programs.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const fault = loopFault();
if (fault !== undefined) console.warn(`skipped: power cuts; ${fault}`);

interface Writing {
  readonly durability: 'full' | 'fast';
  /** Forks after every `n` appends; 0 is never. */
  readonly forkEvery: number;
  /** How many acknowledgements to wait for before the cut. */
  readonly cutAfter: number;
}

/** The state after a cut. */
interface Left {
  readonly acknowledged: number;
  readonly entries: number;
  readonly forks: readonly number[];
  readonly found: readonly string[];
}

/** The moments differ from run to run of a sweep, and are the same in every sweep. */
const moment = (run: number) => 1 + ((run * 7919) % 601);

/** The writer is stopped, and what had reached the device by then is looked at as after a power cut. */
describe.skipIf(fault !== undefined)('a power cut', () => {
  test('loses no acknowledged entry', async () => {
    for (let run = 0; run < sized(3, 3, 80); run += 1) {
      const writing: Writing = { durability: 'full', forkEvery: 5, cutAfter: moment(run) };
      const { acknowledged, entries, forks, found } = await cut(writing);
      expect(found, JSON.stringify(writing)).toEqual([]);
      expect(entries, JSON.stringify(writing)).toBeGreaterThanOrEqual(acknowledged);
      expect(forks.length).toBeGreaterThanOrEqual(Math.floor(acknowledged / 5));
    }
  }, 1_200_000);

  test('loses the last moments of a fast store, and leaves the rest whole', async () => {
    for (let run = 0; run < sized(1, 1, 20); run += 1) {
      const writing: Writing = { durability: 'fast', forkEvery: 50, cutAfter: 30 + moment(run + 1) };
      const { found } = await cut(writing);
      expect(found, JSON.stringify(writing)).toEqual([]);
    }
  }, 1_200_000);

  test('loses appends to a fast store in this simulation too', async () => {
    let lost = 0;
    for (let run = 0; run < sized(1, 1, 20); run += 1) {
      const writing: Writing = { durability: 'fast', forkEvery: 0, cutAfter: 100 + moment(run) };
      const { acknowledged, entries, found } = await cut(writing);
      expect(found, JSON.stringify(writing)).toEqual([]);
      lost += Math.max(0, acknowledged - entries);
    }
    expect(lost).toBeGreaterThan(0);
  }, 1_200_000);
});

async function cut({ durability, forkEvery, cutAfter }: Writing): Promise<Left> {
  using dir = tempDir();
  using disk = loopDisk(dir.file('disk'));
  const acknowledged = { count: 0 };
  const writer = spawn(
    process.execPath,
    [...program('power-worker.ts'), disk.path, durability, `${forkEvery}`],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let errors = '';
  writer.stderr.on('data', (chunk) => {
    errors += String(chunk);
  });
  const ended = once(writer, 'close');
  const enough = new Promise<void>((resolve) => {
    writer.stdout.setEncoding('utf8').on('data', (text: string) => {
      acknowledged.count += text.split('\n').length - 1;
      if (acknowledged.count >= cutAfter) resolve();
    });
  });
  await Promise.race([enough, ended]);
  writer.kill('SIGSTOP');
  await stopped(writer.pid, errors);
  using left = disk.cut();
  writer.kill('SIGKILL');
  await ended; // By now all that it acknowledged has been read.
  return look(left, { acknowledged: acknowledged.count, forkEvery });
}

/** A process that waits for the disk stops when it is done with that. */
async function stopped(pid: number | undefined, errors: string): Promise<void> {
  const state = () => {
    const stat = `/proc/${pid}/stat`;
    return existsSync(stat) ? /\) (\w)/.exec(readFileSync(stat, 'utf8'))?.[1] : undefined;
  };
  while (state() !== 'T') {
    if (state() === undefined || state() === 'Z') throw new Error(`the writer ended early: ${errors}`);
    await setTimeout(1);
  }
}

function look(
  { path }: Pick<LoopDisk, 'path'>,
  { acknowledged, forkEvery }: { acknowledged: number; forkEvery: number },
): Left {
  const place = faultPlace(path);
  using store = openFaultStore(place);
  const found = [...damage(store, place)];
  const texts =
    store.sessions.find('main') === undefined
      ? []
      : [...store.entries.read('main')].flatMap(({ kind, payload }) =>
          kind === 'message' ? [/entry (\d+)/.exec(JSON.stringify(payload))?.[1]] : [],
        );
  if (texts.some((text, i) => Number(text) !== i + 1)) found.push(`not the first ones: ${texts.join(' ')}`);
  const forks = store.sessions
    .list()
    .flatMap(({ session: name }) => /^fork-(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
  if (forks.some((n, i) => n !== (i + 1) * forkEvery || n > texts.length))
    found.push(`forks ${forks.join(' ')} of ${texts.length} entries`);
  return { acknowledged, entries: texts.length, forks, found };
}
