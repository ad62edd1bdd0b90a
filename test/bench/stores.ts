import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assistant, type Draft, handoff, openTapeStore, type SqliteTapeStore, user } from '@tapedeck/tape';
import { payloads, smallPayloads, take } from './payload.ts';
import { grouped } from './table.ts';
import type { Bench } from './topic.ts';

/** From this many entries on a history is made of small entries: with those of the usual size it takes minutes. */
const smallFrom = 1_000_000;

/** The sizes of history at which a cost must be the same. */
export function sizes(bench: Bench): readonly number[] {
  return bench.size([1000, 10_000, 100_000, 1_000_000], [100, 400]);
}

/** How many entries there are where one long history will do. */
export function longSize(bench: Bench): number {
  return bench.size(100_000, 400);
}

/** The database of a home with one session `main` of this many entries, made at its first use. */
export function tapeOf(bench: Bench, entries: number): string {
  const path = join(bench.dir, `home-${entries}`, 'tape.db');
  if (existsSync(path)) return path;
  const start = performance.now();
  using store = openTapeStore(path, { durability: 'fast' });
  store.sessions.open('main');
  const next = entries >= smallFrom ? smallPayloads() : payloads();
  for (let left = entries; left > 0; left -= 1000)
    store.entries.append('main', take(next, Math.min(1000, left)));
  store.checkpoint();
  bench.say(`made ${grouped(entries)} entries in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  return path;
}

/** The database of a home with many sessions, a hundredth of them roots and the others their children. */
export function manySessions(bench: Bench): string {
  const count = bench.size(10_000, 200);
  const path = join(bench.dir, 'home-many', 'tape.db');
  if (existsSync(path)) return path;
  using store = openTapeStore(path, { durability: 'fast' });
  for (let root = 0; root < count / 100; root += 1) {
    store.sessions.open(`root-${root}`);
    for (let child = 1; child < 100; child += 1) store.lineage.fork(`root-${root}`);
  }
  store.checkpoint();
  return path;
}

const usage = { input: 100, output: 20, reasoning: 0, cacheRead: 10, cacheWrite: 5 };

/** Makes a database of roots with ten children each, whose work is merged, at its first use. */
export function fillWithMerged(path: string, sessions: number): void {
  if (existsSync(path)) return;
  using store = openTapeStore(path, { durability: 'fast' });
  for (let n = 0; n < sessions; n += 11) {
    const root = `s${n}`;
    store.sessions.open(root);
    store.entries.append(root, [user('Plan it.'), assistant('Planned.', { model: 'a/b', usage })]);
    for (let at = n + 1; at < n + 11; at += 1) {
      const { session } = store.lineage.fork(root, { name: `s${at}`, intention: { nextSteps: 'Do it.' } });
      store.entries.append(session, [user('Do it.'), assistant('Done.', { run: 'r', model: 'a/b', usage })]);
      store.lineage.merge(session);
    }
  }
  store.checkpoint();
}

/** How many entries the current view of `main` has, beside its boundary. */
const tailEntries = 50;

/**
 * Ends `main` with a boundary and the same entries after it, whatever was there before. Returns the boundary's
 * position.
 */
export function endWithTail(store: SqliteTapeStore): number {
  const tail: Draft[] = [
    handoff('tail', { summary: 'What went before.' }),
    ...take(payloads(2), tailEntries),
  ];
  return store.entries.append('main', tail).from;
}

/** The graph file beside a database. */
export function graphOf(path: string): string {
  return join(dirname(path), 'session_graph.jsonl');
}
