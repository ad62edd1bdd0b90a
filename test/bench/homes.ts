import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openJournal } from '@tapedeck/graph/journal';
import { openTapeStore } from '@tapedeck/tape';
import { gather } from './measure.ts';
import { processesOf, tape } from './process-time.ts';
import { fillWithMerged } from './stores.ts';
import { type Bench, compared, type Row } from './topic.ts';

/** The verbs that look at many sessions, with the most that they may take in a large home, against a small one. */
const goals = {
  status: 1.5,
  'sessions -n 20': 1.5,
  'children s0': 1.5,
  'lineage s0': 1.5,
  graph: 1.5,
  'graph s0': 1.5,
  // What shells ask for each Tab: all sessions, and those of a name's beginning.
  '__complete log ': 1.5,
  '__complete show s10': 1.5,
  'audit s0': 1.5,
  'usage s0 --tree': 2,
  'usage --tree --quiet': 2,
  audit: undefined,
  verify: undefined,
  'graph --all': undefined,
} as const;

type Line = keyof typeof goals;

/** Makes a home of roots with ten children each, whose work is merged. */
function homeOf({ dir }: Bench, sessions: number): string {
  const home = join(dir, `home-${sessions}`);
  mkdirSync(home, { mode: 0o700 });
  const path = join(home, 'tape.db');
  fillWithMerged(path, sessions);
  // The graph file is written in one go: each line by itself would wait for the disk.
  openTapeStore(path, { journal: openJournal(join(home, 'session_graph.jsonl')) }).close();
  return home;
}

/** The processor time of verbs in homes of many sessions, against a home of a hundred. */
export async function homes(bench: Bench): Promise<Row[]> {
  const lines = Object.keys(goals) as Line[];
  const sizes = bench.size([110, 11_000, 110_000], [11, 22]);
  const [small = 0, ...large] = sizes;
  const timed = new Map(sizes.map((sessions) => [sessions, processesOf(homeOf(bench, sessions))]));
  const rows: Row[] = [];
  for (const line of lines) {
    // A verb that reads everything takes a minute in the largest home.
    const most = goals[line];
    const measured = sizes.slice(0, most === undefined ? 2 : undefined);
    const acts = Object.fromEntries(
      measured.flatMap((sessions) => {
        const act = timed.get(sessions)?.(tape, ...line.split(' '));
        return act === undefined ? [] : [[String(sessions), act] as const];
      }),
    );
    const samples = await gather(acts, bench.size(most === undefined ? 3 : 9, 1));
    for (const sessions of large) {
      const [ours, limit] = [samples[sessions], samples[small]];
      if (ours === undefined || limit === undefined) continue;
      rows.push(
        compared(ours, limit, {
          work: `tape ${line.trim()} of ${sessions.toLocaleString('en')} sessions (CPU)`,
          against: `of ${small}`,
          unit: 'ms',
          ...(most !== undefined && { goal: { most } }),
        }),
      );
    }
  }
  return rows;
}
