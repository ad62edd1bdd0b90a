import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { checkJournal, readLines } from '@tapedeck/graph';
import { type Entry, openTapeStore, processOwner, user } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { describe, expect, test, vi } from 'vitest';
import { MemoryJournal } from '../support/memory-journal.ts';
import { script } from '../support/programs.ts';
import { rawDb } from '../support/raw-db.ts';
import { sized } from '../support/size.ts';
import { refusal } from '../support/store.ts';
import { startStores } from '../support/store-process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startWorker } from '../support/worker.ts';

const textOf = ({ payload }: Entry) => /"text":"([^"]*)"/.exec(JSON.stringify(payload))?.[1];

/** All seqs of a session, which must be 1, 2, 3 …, and its texts. */
function read(path: string, name: string): (string | undefined)[] {
  using store = openTapeStore(path);
  const entries = [...store.entries.read(name)];
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1));
  expect([...store.verify()]).toEqual([]);
  return entries.filter(({ kind }) => kind === 'message').map(textOf);
}

describe('several processes', () => {
  test(
    'open a missing home at the same moment, and one creates the session',
    async () => {
      await using workers = await startStores(sized(4, 8, 32));
      for (let round = 1; round <= sized(4, 4, 100); round += 1) {
        using dir = tempDir();
        const [path, graph] = [dir.file('home/tape.db'), dir.file('home/session_graph.jsonl')];
        // Every other round finds a directory, and a database that nothing is in yet.
        if (round % 2 === 0) mkdirSync(dir.file('home'), { mode: 0o700 });
        if (round % 4 === 0) writeFileSync(path, '', { mode: 0o600 });
        const said = await Promise.all(
          workers.map((worker) =>
            worker.ask<{ created: boolean; id: string; added: number }>('first', { path, graph }),
          ),
        );
        expect(new Set(said.map(({ id }) => id)).size, `round ${round}`).toBe(1);
        expect(said.filter(({ created }) => created).length).toBe(1);
        expect(said.filter(({ added }) => added === 1).length).toBe(1);
        expect(read(path, 'main')).toEqual(['first']);
        expect(checkJournal(readLines(graph))).toMatchObject({ records: 1, fragments: 0, torn: false });
      }
    },
    sized(60_000, 180_000, 900_000),
  );

  test('read a home that another one is making: they wait for its tables, and not for a file that was empty before', async () => {
    using dir = tempDir();
    const path = dir.file('home/tape.db');
    mkdirSync(dir.file('home'), { mode: 0o700 });
    const { args, cwd } = script(`
      import { openTapeStore } from '@tapedeck/tape';
      console.log('ready');
      setTimeout(() => openTapeStore(process.argv[1]).close(), 100);
    `);
    const maker = spawn(process.execPath, [...args, path], { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
    await once(maker.stdout, 'data');
    // A busy machine may take a second to start the process, and a file of that age is not waited for.
    writeFileSync(path, '', { mode: 0o600, flag: 'a' });
    openTapeStore(path, { readonly: true }).close();
    expect(await once(maker, 'exit')).toEqual([0, null]);
    writeFileSync(dir.file('home/empty.db'), '', { mode: 0o600 });
    utimesSync(dir.file('home/empty.db'), 1, 1);
    const waits = vi.spyOn(Atomics, 'wait');
    const refused = refusal(() => openTapeStore(dir.file('home/empty.db'), { readonly: true }));
    expect(refused).toMatchObject({
      code: 'TAPE_NOT_A_TAPE',
      message: expect.stringContaining('it has no tapes'),
    });
    expect(waits).not.toHaveBeenCalled();
    waits.mockRestore();
  });

  test('open a new home while another process inspects it: they wait until it has finished', async () => {
    using dir = tempDir();
    const [path, graph] = [dir.file('tape.db'), dir.file('session_graph.jsonl')];
    writeFileSync(path, '', { mode: 0o600 });
    const reader = new Database(path);
    // SQLite's own waiting does not help: the switch of the journal, which needs the file for itself, does without it.
    reader.exec('BEGIN; SELECT * FROM sqlite_schema');
    await using workers = await startStores(2);
    const opening = Promise.all(
      workers.map((worker) => worker.ask<{ created: boolean }>('first', { path, graph, at: 0 })),
    );
    await setTimeout(300);
    reader.close();
    expect((await opening).map(({ created }) => created).sort()).toEqual([false, true]);
    expect(read(path, 'main')).toEqual(['first']);
  });

  test('append to separate tapes without gaps or losses', async () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    {
      using store = openTapeStore(path);
      store.sessions.open('one');
      store.sessions.open('two');
    }
    const workers = [
      await startWorker(path, 'append', 'one', '300'),
      await startWorker(path, 'append', 'two', '300'),
    ];
    for (const worker of workers) worker.go();
    for (const worker of workers)
      expect(await worker.done()).toEqual(Array.from({ length: 300 }, (_, i) => i + 2));
    for (const [i, name] of ['one', 'two'].entries())
      expect(read(path, name)).toEqual(Array.from({ length: 300 }, (_, n) => `${workers[i]?.pid} ${n + 1}`));
  });

  test('append to one tape, each in its order, without gaps or losses', async () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    {
      using store = openTapeStore(path);
      store.sessions.open('main');
    }
    const workers = [
      await startWorker(path, 'append', 'main', '300'),
      await startWorker(path, 'append', 'main', '300'),
    ];
    for (const worker of workers) worker.go();
    const acknowledged = (await Promise.all(workers.map((worker) => worker.done()))).flat();
    expect(new Set(acknowledged).size).toBe(600);
    const texts = read(path, 'main');
    expect(texts.length).toBe(600);
    for (const { pid } of workers)
      expect(texts.filter((text) => text?.startsWith(`${pid} `))).toEqual(
        Array.from({ length: 300 }, (_, n) => `${pid} ${n + 1}`),
      );
  });

  test(
    'post to a session while its owners change: nothing is stranded, nothing is appended twice',
    async () => {
      using dir = tempDir();
      const path = dir.file('tape.db');
      openTapeStore(path).sessions.open('main');
      await using workers = await startStores(4);
      const [one, two, ...owners] = workers;
      for (const worker of workers) await worker.ask('open', { path });
      // Thousands of posts, each its own race with a release; the shared keys are posted by both.
      const each = sized(300, 300, 16_000);
      const shared = sized(80, 80, 4_000);
      const posting = [one, two].map(async (poster, i) => {
        const ask = (prefix: string, count: number) =>
          poster?.ask<[string, string][]>('post', { session: 'main', prefix, count }) ?? [];
        return [...(await ask(`only ${i + 1}: `, each)), ...(await ask('both: ', shared))];
      });
      let busy = true;
      const holding = owners.map(async (owner) => {
        const held: [string, number][] = [];
        while (busy)
          held.push(...(await owner.ask<[string, number][]>('hold', { session: 'main', count: 50 })));
        return held;
      });
      const posted = await Promise.all(posting).finally(() => {
        busy = false;
      });
      const held = (await Promise.all(holding)).flat();
      expect(new Set(held.map(([, epoch]) => epoch)).size).toBe(held.length);
      // The process that owned the session at the time of a post has done it before it left, under the same lease.
      const epochs = new Map(held);
      using raw = rawDb(path);
      const rows = raw.all<{ key: string; epoch: number }>(
        'SELECT key, epoch FROM entry WHERE key IS NOT NULL',
      );
      const written = new Map(rows.map(({ key, epoch }) => [key, epoch]));
      const owned = posted.flat();
      expect(owned.length).toBeGreaterThan(each / 10);
      expect(owned.filter(([key, owner]) => written.get(`u:${key}`) !== epochs.get(owner))).toEqual([]);
      using store = openTapeStore(path, { readonly: true });
      expect(store.inbox.list('main')).toEqual([]);
      const texts = read(path, 'main').filter((text) => !text?.startsWith('run '));
      const expected = (prefix: string, count: number) =>
        Array.from({ length: count }, (_, n) => `${prefix}${n + 1}`);
      for (const prefix of ['only 1: ', 'only 2: '])
        expect(texts.filter((text) => text?.startsWith(prefix))).toEqual(expected(prefix, each));
      expect(texts.filter((text) => text?.startsWith('both: '))).toEqual(expected('both: ', shared));
      expect(texts.length).toBe(2 * each + shared);
    },
    sized(120_000, 120_000, 900_000),
  );
});

describe('a process that is killed', () => {
  test('is replaced at once as the owner of a session', async () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    using store = openTapeStore(path);
    store.sessions.open('main');
    const holder = await startWorker(path, 'hold');
    holder.go();
    await holder.until(1);
    expect(refusal(() => store.leases.acquire('main', processOwner('next')))).toMatchObject({
      code: 'TAPE_BUSY',
      data: { owner: { id: 'holder', pid: holder.pid } },
    });
    expect(refusal(() => store.entries.append('main', [user('x')])).code).toBe('TAPE_BUSY');
    store.inbox.post('main', { body: { type: 'append', drafts: [user('waiting')] } });
    await holder.kill();
    const [held] = holder.output as [{ epoch: number; expiresAt: number }];
    expect(held.expiresAt).toBeGreaterThan(Date.now());
    // Opening drains what the dead owner left.
    expect(read(path, 'main')).toEqual(['waiting']);
    expect(store.leases.acquire('main', processOwner('next')).epoch).toBeGreaterThan(held.epoch);
  });

  test.each([20, 75, 140])('loses nothing that was acknowledged to it: after %d', async (count) => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    {
      using store = openTapeStore(path);
      store.sessions.open('main');
    }
    const worker = await startWorker(path, 'batches', 'main', '100000');
    worker.go();
    await worker.until(count);
    await worker.kill();
    const last = Number(worker.output.at(-1));
    expect(last).toBe(1 + 2 * worker.output.length);
    const texts = read(path, 'main');
    expect(texts.length).toBeGreaterThanOrEqual(last - 1);
    // A batch is there whole or not at all.
    expect(texts).toEqual(
      Array.from({ length: texts.length / 2 }, (_, i) => [`q${i + 1}`, `a${i + 1}`]).flat(),
    );
  });
});

describe('the graph file', () => {
  test('gets the line of a process that was killed between its commit and the file', async () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    const journal = new MemoryJournal();
    {
      using store = openTapeStore(path, { journal });
      store.sessions.open('main');
    }
    const before = journal.text;
    const worker = await startWorker(path, 'fork and die');
    worker.go();
    await expect(worker.done()).rejects.toThrow(/SIGKILL/);
    openTapeStore(path, { journal }).close();
    expect(journal.text.startsWith(before)).toBe(true);
    expect(journal.lines().map((line) => JSON.parse(line).type)).toEqual(['session', 'fork']);
    const after = journal.text;
    openTapeStore(path, { journal }).close();
    expect(journal.text).toBe(after);
  });

  test('gets each line once, wherever its end was torn off', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    const whole = new MemoryJournal();
    {
      using store = openTapeStore(path, { journal: whole });
      store.sessions.open('main');
      for (const name of ['one', 'two', 'three']) store.lineage.fork('main', { name });
    }
    for (let at = 0; at <= whole.text.length; at += at < 10 || at > whole.text.length - 10 ? 1 : 23) {
      const journal = new MemoryJournal(whole.text.slice(0, at));
      openTapeStore(path, { journal }).close();
      expect(journal.lines(), `torn at ${at}`).toEqual(whole.lines());
      expect(journal.text.endsWith('\n')).toBe(true);
      expect(journal.text.slice(0, at)).toBe(whole.text.slice(0, at));
    }
  });

  test('that cannot be written lags, and the act succeeds', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    const journal = new MemoryJournal();
    using store = openTapeStore(path, { journal });
    store.sessions.open('main');
    journal.failAfter = 40;
    expect(store.lineage.fork('main', { name: 'child' })).toMatchObject({
      session: 'child',
      graphLagging: true,
    });
    expect(journal.lines().length).toBe(1);
    expect(store.lineage.fork('main', { name: 'next' })).not.toHaveProperty('graphLagging');
    expect(journal.lines().map((line) => JSON.parse(line).g)).toEqual([1, 2, 3]);
  });

  test('of another database stays as it is where it cannot be set aside, and each receipt says so', () => {
    using dir = tempDir();
    const [path, other] = [dir.file('tape.db'), dir.file('other.db')];
    const [journal, foreign] = [new MemoryJournal(), new MemoryJournal()];
    for (const [file, graph] of [
      [path, journal],
      [other, foreign],
    ] as const) {
      using store = openTapeStore(file, { journal: graph });
      store.sessions.open('main');
    }
    const before = foreign.text;
    journal.text += journal.text.replace('"g":1', '"g":2');
    const spoilt = journal.text;
    for (const [n, graph] of [foreign, journal].entries()) {
      using store = openTapeStore(path, { journal: graph });
      const told = { graphLagging: true, graphDiverged: true };
      expect(store.sessions.open('main')).toMatchObject({ created: false, ...told });
      expect(store.sessions.open(`more-${n}`)).toMatchObject({ created: true, ...told });
      expect(store.sessions.update('main', { lifecycle: 'active' })).toMatchObject(told);
      expect(store.lineage.fork('main')).toMatchObject(told);
    }
    expect([foreign.text, journal.text]).toEqual([before, spoilt]);
  });
});

describe('files', () => {
  test('are private whatever the umask is', async () => {
    using dir = tempDir();
    const worker = await startWorker(dir.file('home/tape.db'), 'modes');
    worker.go();
    expect(await worker.done()).toEqual([
      { '.': '700', 'tape.db': '600', 'tape.db-shm': '600', 'tape.db-wal': '600' },
    ]);
  });

  test('of a newer version are refused and left unchanged', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    openTapeStore(path).close();
    {
      using db = rawDb(path);
      db.exec('PRAGMA user_version = 99');
      db.all('PRAGMA wal_checkpoint(TRUNCATE)');
    }
    const before = readFileSync(path);
    for (const readonly of [false, true])
      expect(refusal(() => openTapeStore(path, { readonly }))).toMatchObject({
        code: 'TAPE_SCHEMA_NEWER',
        data: { found: 99 },
      });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test.each([
    ['another program’s database', 'CREATE TABLE t (a); INSERT INTO t VALUES (1)'],
    ['a database with another application id', 'PRAGMA application_id = 7; PRAGMA user_version = 1'],
  ])('of %s are refused and left unchanged', (_, sql) => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    const db = new Database(path);
    db.exec(sql);
    db.close();
    const [before, mtime] = [readFileSync(path), statSync(path).mtimeMs];
    expect(refusal(() => openTapeStore(path)).code).toBe('TAPE_NOT_A_TAPE');
    expect(readFileSync(path).equals(before)).toBe(true);
    expect([readdirSync(dir.path), statSync(path).mtimeMs]).toEqual([['tape.db'], mtime]);
  });

  test('that are no databases are refused and left unchanged', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    const text = 'my diary, page one. '.repeat(100);
    writeFileSync(path, text);
    expect(['TAPE_NOT_A_TAPE', 'TAPE_CORRUPT']).toContain(refusal(() => openTapeStore(path)).code);
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect(readdirSync(dir.path)).toEqual(['tape.db']);
  });

  test('that are links to others are refused', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    openTapeStore(path).close();
    symlinkSync(path, dir.file('soft.db'));
    linkSync(path, dir.file('hard.db'));
    mkdirSync(dir.file('directory.db'));
    for (const name of ['soft.db', 'hard.db', 'directory.db'])
      expect(refusal(() => openTapeStore(dir.file(name))).code).toBe('TAPE_CANNOT_OPEN');
    expect(refusal(() => openTapeStore(dir.file('none.db'), { readonly: true })).code).toBe(
      'TAPE_CANNOT_OPEN',
    );
    expect(readdirSync(dir.path).sort()).toEqual(['directory.db', 'hard.db', 'soft.db', 'tape.db']);
  });
});

test('eight processes whose clocks all show one millisecond make thousands of distinct ids', async () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  openTapeStore(path).sessions.open('main');
  await using workers = await startStores(8);
  const count = sized(150, 150, 1_000);
  const ids = await Promise.all(workers.map((worker) => worker.ask<string[]>('ids', { path, count })));
  expect(new Set(ids.flat()).size).toBe(8 * count);
  // Opening for writing appends what was posted: nothing took the place of something else.
  expect(read(path, 'main').length).toBe(8 * count);
});
