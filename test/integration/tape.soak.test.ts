import { existsSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkJournal, openJournal, readLines } from '@tapedeck/graph';
import { openTapeStore, type SqliteTapeStore } from '@tapedeck/tape';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { type StoreProcess, startStores } from '../support/store-process.ts';
import { tempDir } from '../support/temp-dir.ts';

/** Started once: starting this many processes takes longer than the test itself. */
let started: Awaited<ReturnType<typeof startStores>>;
beforeAll(async () => {
  started = await startStores(Math.max(...crowds.map(([writers]) => writers)) + 3);
}, 60_000);
afterAll(async () => {
  await started[Symbol.asyncDispose]();
});

interface Acknowledged {
  readonly session: string;
  readonly seq: number;
  readonly key: string;
}

interface Written {
  readonly acknowledged: readonly Acknowledged[];
  readonly worstMs: number;
}

/**
 * Whether the acknowledgements form one history of each tape: every one has its own position, the tape has that
 * entry there, nothing else was written, and the acts of one process are in the order in which it did them.
 */
function checkHistory(store: SqliteTapeStore, session: string, written: readonly Written[]): number {
  const tape = [...store.entries.read(session, { from: 2 })];
  expect(tape.map(({ seq }) => seq)).toEqual(tape.map((_, i) => i + 2));
  const keys = tape.map(({ key }) => key?.replace(/^u:/, ''));
  const told = written.flatMap(({ acknowledged }) => acknowledged.filter((one) => one.session === session));
  expect(told.toSorted((a, b) => a.seq - b.seq).map(({ key }) => key)).toEqual(keys);
  for (const { acknowledged } of written) {
    const own = acknowledged.filter((one) => one.session === session).map(({ seq }) => seq);
    expect(own).toEqual(own.toSorted((a, b) => a - b));
  }
  return tape.length;
}

/** Stops a process now and then, wherever it is, inside a transaction too; the others have to wait for it. */
async function interrupt(worker: StoreProcess | undefined, until: number): Promise<void> {
  while (Date.now() < until - 600) {
    worker?.signal('SIGSTOP');
    await sleep(300);
    worker?.signal('SIGCONT');
    await sleep(200);
  }
}

/** How many write, and for how many milliseconds. */
const crowds: readonly (readonly [number, number])[] = sized(
  [[4, 600]],
  [
    [2, 1_000],
    [8, 1_000],
    [16, 1_500],
  ],
  [
    [2, 60_000],
    [8, 60_000],
    [16, 120_000],
  ],
);

test.each(crowds)(
  '%i writers, a bulk writer, two readers and one process that is stopped again and again write one history',
  async (writers, forMs) => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    const sessions = ['shared', 'second'];
    {
      using store = openTapeStore(path, { journal: openJournal(dir.file('session_graph.jsonl')) });
      for (const session of [...sessions, 'bulk']) store.sessions.open(session);
    }
    const workers = started.slice(0, writers + 3);
    const [bulk, one, two, ...others] = workers;
    const graph = dir.file('session_graph.jsonl');
    for (const worker of [bulk, ...others])
      await worker?.ask('open', { path, graph, durability: sized('fast', 'fast', 'full') });
    const until = Date.now() + forMs;
    const reading = [one, two].map((reader) =>
      reader?.ask<{ reads: number; grown: number }>('watch', {
        path,
        sessions: [...sessions, 'bulk'],
        until,
      }),
    );
    const writing = [
      bulk?.ask<Written>('bulk', { session: 'bulk', until }),
      // As many that write as fast as they can as the machine can bear, the rest as a conversation does.
      ...others.map((worker, i) => worker.ask<Written>('write', { sessions, until, pauseMs: i < 2 ? 0 : 5 })),
    ];
    await interrupt(others.at(-1), until);
    const written = (await Promise.all(writing)).filter((one) => one !== undefined);
    const watched = await Promise.all(reading);

    using store = openTapeStore(path, { readonly: true });
    const entries = [...sessions, 'bulk'].map((session) => checkHistory(store, session, written));
    expect([...store.verify()]).toEqual([]);
    // The writers forked too: each line is in the graph file, once and in order.
    const lineage = store.lineageHash();
    expect(lineage?.g).toBe(store.sessions.list({ all: true }).length);
    expect(checkJournal(readLines(graph))).toEqual({
      records: lineage?.g,
      ...lineage,
      fragments: 0,
      torn: false,
      problems: [],
    });
    for (const { acknowledged } of written) expect(acknowledged.length).toBeGreaterThan(0);
    for (const reader of watched) {
      expect(reader?.reads).toBeGreaterThan(0);
      expect(reader?.grown).toBe(0);
    }
    // All waits ended before the deadline, or TAPE_LOCKED would have failed them.
    const worst = Math.max(...written.slice(0, -1).map(({ worstMs }) => worstMs));
    console.log(
      `${writers} writers: ${entries.join(' + ')} entries, the longest wait ${Math.round(worst)} ms`,
    );
    expect(worst).toBeLessThan(15_000);

    for (const worker of workers) await worker.ask('close');
    using last = openTapeStore(path);
    expect(last.checkpoint()).toBe(true);
    expect(existsSync(`${path}-wal`) ? statSync(`${path}-wal`).size : 0).toBeLessThan(64 * 1024 * 1024);
  },
  sized(180_000, 180_000, 600_000),
);
