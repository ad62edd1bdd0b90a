import { openTapeStore } from '@tapedeck/tape';
import { numberOf } from './child.ts';
import { gather } from './measure.ts';
import { endWithTail, longSize, manySessions, tapeOf } from './stores.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';

/**
 * Says the greatest memory that the process ever had, in MB. Linux counts in `maxRSS` what the parent had when it
 * started the child; `VmHWM` begins with the child's own program.
 */
export const sayPeak = `
  const { existsSync, readFileSync } = await import('node:fs');
  const status = '/proc/self/status';
  const peak = existsSync(status) ? /VmHWM:\\s+(\\d+)/.exec(readFileSync(status, 'utf8'))?.[1] : undefined;
  console.log(Number(peak ?? process.resourceUsage().maxRSS) / 1024);`;

const ours = (act: string) => `
  import { openTapeStore, streamView, view } from '@tapedeck/tape';
  const store = openTapeStore(process.argv[1], { durability: 'fast' });
  ${act}
  store.close();
  ${sayPeak}`;

const bare = `
  import Database from 'better-sqlite3';
  const db = new Database(process.argv[1]);
  db.prepare('SELECT count(*) FROM tape').get();
  db.close();
  ${sayPeak}`;

const fullView = `
  const policy = 'full';
  for await (const message of streamView(() => store.views.entries('main', { policy }), { policy })) message.role;`;

/** The budget of a streamed read, in MB. */
const budget = 120;

/** Peak memory, each of a process of its own. */
export async function memory(bench: Bench): Promise<Row[]> {
  const entries = longSize(bench);
  const [long, many] = [tapeOf(bench, entries), manySessions(bench)];
  {
    using store = openTapeStore(long, { durability: 'fast' });
    endWithTail(store);
  }
  const samples = await gather(
    {
      bare: () => numberOf(bare, long),
      view: () => numberOf(ours(`view(store.views.entries('main'));`), long),
      fork: () => numberOf(ours(`store.lineage.fork('main');`), long),
      list: () => numberOf(ours('store.sessions.list();'), many),
      stream: () => numberOf(ours(`for (const entry of store.entries.read('main')) entry.seq;`), long),
      messages: () => numberOf(ours(fullView), long),
    },
    bench.size(5, 1),
  );
  const row = (sample: readonly number[], work: string) =>
    compared(sample, samples.bare, {
      work: `peak memory: ${work}`,
      against: 'a bare process that opens the database',
      unit: 'MB',
    });
  return [
    row(samples.view, `last view of ${grouped(entries)} entries`),
    row(samples.fork, `fork at ${grouped(entries)} entries`),
    row(samples.list, 'list of all sessions'),
    compared(
      samples.stream,
      samples.stream.map(() => budget),
      {
        work: `peak memory: read of ${grouped(entries)} entries, one by one`,
        against: `a budget of ${budget} MB`,
        unit: 'MB',
        goal: { most: 1 },
      },
    ),
    compared(samples.messages, samples.stream, {
      work: `peak memory: full view of ${grouped(entries)} entries, message by message`,
      against: 'a read of the same entries, one by one',
      unit: 'MB',
      goal: { most: 1.5 },
    }),
  ];
}
