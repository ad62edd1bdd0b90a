import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import {
  anchor,
  type Lease,
  openTapeStore,
  processOwner,
  result,
  type SqliteTapeStore,
  user,
} from '@tapedeck/tape';
import { leaseTtlMs, type Owner } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { refusal } from '../support/store.ts';
import { startStore, startStores } from '../support/store-process.ts';
import { tempDir } from '../support/temp-dir.ts';

const start = Date.UTC(2026, 10, 21, 10);
const hour = 3_600_000;

/** Two stores of one file, as two programs have them, each with a clock that is set by hand. */
interface Pair extends Disposable {
  readonly path: string;
  readonly one: SqliteTapeStore;
  readonly two: SqliteTapeStore;
  readonly time: { one: number; two: number };
}

function pair(): Pair {
  const dir = tempDir();
  const path = dir.file('tape.db');
  const time = { one: start, two: start };
  const one = openTapeStore(path, { durability: 'fast', now: () => time.one });
  const two = openTapeStore(path, { durability: 'fast', now: () => time.two });
  one.sessions.open('main');
  one.sessions.open('other');
  one.entries.append('main', [user('first')]);
  one.lineage.fork('main', { name: 'child' });
  return {
    path,
    one,
    two,
    time,
    [Symbol.dispose]: () => {
      one.close();
      two.close();
      dir[Symbol.dispose]();
    },
  };
}

/** Without it the start of a process is unknown: its number alone shows whether it exists. */
const proc = existsSync('/proc/self/stat');

/** A process of this machine that is there and is not this one. */
const alive: Owner = { ...processOwner('alive'), pid: process.ppid, pidStart: startOf(process.ppid) };
const { pidStart: _, ...withoutStart } = alive;
const gone = 2 ** 22 - 1;

/** Runs a command as a container does, with process numbers of its own. */
const unshare = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];
const canUnshare = spawnSync('unshare', [...unshare.slice(1), 'true']).status === 0;

function startOf(pid: number): string {
  if (!proc) return '';
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

describe('a lease protects a session', () => {
  test.each<[string, Owner]>([
    ['of a process that is there', alive],
    ['of this process', processOwner('self')],
    ['of a process whose start is unknown', { id: 'x', pid: process.ppid, host: hostname() }],
    [
      'of a process that is gone, on another boot of this host',
      { ...alive, pid: gone, bootId: 'another boot' },
    ],
    [
      'of a process that is gone, in another PID namespace of this boot',
      { ...alive, pid: gone, pidNamespace: '1' },
    ],
    ['of a process that is gone, and whose boot is unknown', { id: 'x', pid: gone, host: hostname() }],
    ['of a process that is gone, on another host', { ...alive, pid: gone, host: 'another-host' }],
    ['of an owner that is no process', { id: 'x' }],
    ['of a process that is gone, on an unnamed host', { id: 'x', pid: gone }],
  ])('%s, until the moment that it expires', (_, owner) => {
    using both = pair();
    const lease = both.one.leases.acquire('main', owner, { ttlMs: 1000 });
    expect(lease.expiresAt).toBe(start + 1000);
    for (const later of [0, 1, 999]) {
      both.time.two = start + later;
      const held = { code: 'TAPE_BUSY', data: { owner: { id: owner.id }, expiresAt: start + 1000 } };
      expect(refusal(() => both.two.leases.acquire('main', { id: 'next' }))).toMatchObject(held);
      expect(refusal(() => both.two.entries.append('main', [user('x')]))).toMatchObject(held);
      expect(both.two.inbox.drain('main')).toBe(undefined);
    }
    both.time.two = start + 1000;
    expect(both.two.leases.acquire('main', { id: 'next' }).epoch).toBeGreaterThan(lease.epoch);
    expect(refusal(() => both.one.entries.append('main', [user('x')], { lease })).code).toBe('TAPE_FENCED');
  });

  test.each<[string, Owner]>([
    ['that is gone', { ...alive, pid: gone }],
    ['that is gone, and whose start is unknown', { ...withoutStart, pid: gone }],
    ...(proc
      ? ([
          ['whose number another process has now', { ...alive, pidStart: '1' }],
          ['whose number this process has now', { ...processOwner('x'), pidStart: '1' }],
        ] as [string, Owner][])
      : []),
  ])('but not that of a process %s: it is replaced at once', (_, owner) => {
    using both = pair();
    const lease = both.one.leases.acquire('main', owner);
    expect(both.two.leases.acquire('main', { id: 'next' }).epoch).toBeGreaterThan(lease.epoch);
    expect(refusal(() => both.one.leases.extend(lease)).code).toBe('TAPE_FENCED');
  });

  test.skipIf(!proc)(
    'but not that of a process that has ended without being reaped (needs /proc)',
    async () => {
      // The shell starts a child, and becomes a program that never reaps it.
      const parent = spawn('sh', ['-c', 'sleep 0.3 & echo $!; exec sleep 60'], {
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      try {
        const pid = Number(await new Promise((resolve) => parent.stdout.once('data', resolve)));
        const state = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.[0];
        while (state() !== 'Z') await new Promise((resolve) => setTimeout(resolve, 5));
        using both = pair();
        both.one.leases.acquire('main', { ...processOwner('zombie'), pid, pidStart: startOf(pid) });
        expect(both.two.leases.acquire('main', { id: 'next' }).owner).toBe('next');
      } finally {
        parent.kill('SIGKILL');
      }
    },
  );

  test('alone: another session is free, and cannot be written under that lease', () => {
    using both = pair();
    const lease = both.one.leases.acquire('main', alive);
    expect(both.two.entries.append('other', [user('x')]).added).toBe(1);
    const other = both.two.leases.acquire('other', alive);
    expect(() => both.one.entries.append('other', [user('x')], { lease })).toThrow(/a lease on 'main'/);
    expect(() => both.two.entries.append('main', [user('x')], { lease: other })).toThrow(
      /a lease on 'other'/,
    );
    expect(both.one.entries.append('main', [user('x')], { lease }).added).toBe(1);
  });

  test('as long as a heartbeat extends it; a write does not', () => {
    using both = pair();
    let lease = both.one.leases.acquire('main', alive);
    for (let beat = 1; beat <= 5; beat += 1) {
      both.time.one = both.time.two = start + beat * 10_000;
      lease = both.one.leases.extend(lease);
      expect(lease.expiresAt).toBe(both.time.one + leaseTtlMs);
    }
    both.time.two = lease.expiresAt - 1;
    both.one.entries.append('main', [user('x')], { lease });
    expect(refusal(() => both.two.leases.acquire('main', { id: 'next' })).code).toBe('TAPE_BUSY');
    both.time.two = lease.expiresAt;
    expect(both.two.leases.acquire('main', { id: 'next' }).owner).toBe('next');
  });
});

describe('clocks that differ', () => {
  test('on one boot: the clock since the boot decides, whatever the time of day is', () => {
    using dir = tempDir();
    const time = { now: start, uptime: 5_000 };
    const sources = { now: () => time.now, uptime: () => time.uptime };
    using store = openTapeStore(dir.file('tape.db'), { durability: 'fast', ...sources });
    store.sessions.open('main');
    const lease = store.leases.acquire('main', alive, { ttlMs: 1000 });
    for (const day of [-hour, hour, 10_000 * hour]) {
      time.now = start + day;
      expect(refusal(() => store.leases.acquire('main', { id: 'next' })).code).toBe('TAPE_BUSY');
      expect(store.leases.list().map(({ session }) => session)).toEqual(['main']);
    }
    time.uptime += 999;
    expect(refusal(() => store.leases.acquire('main', { id: 'next' })).code).toBe('TAPE_BUSY');
    time.uptime += 1;
    expect(store.leases.list()).toEqual([]);
    expect(store.leases.acquire('main', { id: 'next' }).epoch).toBeGreaterThan(lease.epoch);
  });

  test('on another boot: the time of day decides, since the clocks began at different times', () => {
    using dir = tempDir();
    const time = { now: start, uptime: 5_000 };
    const sources = { now: () => time.now, uptime: () => time.uptime };
    using store = openTapeStore(dir.file('tape.db'), { durability: 'fast', ...sources });
    store.sessions.open('main');
    store.leases.acquire('main', { ...alive, bootId: 'another boot' }, { ttlMs: 1000 });
    time.uptime += 1_000_000;
    expect(refusal(() => store.leases.acquire('main', { id: 'next' })).code).toBe('TAPE_BUSY');
    time.now = start + 1000;
    expect(store.leases.acquire('main', { id: 'next' }).owner).toBe('next');
  });

  test('an hour ahead: another owner takes the session over, and the first writes nothing more', () => {
    using both = pair();
    const lease = both.one.leases.acquire('main', alive);
    both.time.two = start + hour;
    both.two.leases.acquire('main', { id: 'next' });
    expect(refusal(() => both.one.entries.append('main', [user('x')], { lease })).code).toBe('TAPE_FENCED');
  });

  test('an hour behind: the owner keeps it for that hour and no longer, and both write in one order', () => {
    using both = pair();
    const lease = both.one.leases.acquire('main', alive);
    both.time.two = start - hour;
    expect(refusal(() => both.two.leases.acquire('main', { id: 'next' })).code).toBe('TAPE_BUSY');
    both.time.two = lease.expiresAt;
    const next = both.two.leases.acquire('main', { id: 'next' });
    both.time.two = start - hour;
    expect(both.two.entries.append('main', [user('x')], { lease: next }).to).toBe(3);
    expect([...both.two.verify()]).toEqual([]);
  });

  test('set back under an owner: it continues, and releases its lease', () => {
    using both = pair();
    const lease = both.one.leases.acquire('main', alive);
    both.time.one = start - hour;
    expect(both.one.entries.append('main', [user('x')], { lease }).added).toBe(1);
    expect(both.one.leases.extend(lease).expiresAt).toBe(start - hour + leaseTtlMs);
    expect(both.one.leases.release(lease)).toBe(true);
    expect(both.two.leases.acquire('main', { id: 'next' }).owner).toBe('next');
  });
});

/** Everything that writes a session under a lease. */
const underLease: Readonly<Record<string, (store: SqliteTapeStore, lease: Lease) => unknown>> = {
  append: (store, lease) => store.entries.append('main', [user('x')], { lease }),
  'append of an anchor': (store, lease) => store.entries.append('main', [anchor('x')], { lease }),
  result: (store, lease) => store.entries.append('main', [result('x')], { lease }),
  merge: (store, lease) => store.lineage.merge('child', { text: 'x' }, { lease }),
  mergeAll: (store, lease) => store.lineage.merge([{ child: 'child', text: 'x' }], { lease }),
  rewind: (store, lease) => store.history.rewind('main', 1, { lease }),
  setTask: (store, lease) => store.sessions.update('main', { task: 'running' }, { lease }),
  redact: (store, lease) => store.entries.redact('main', 2, 'x', { lease }),
  settle: (store, lease) => store.entries.append(lease.id, [user('x')], { lease, settles: 'run' }),
  drain: (store, lease) => store.inbox.drain(lease),
  extend: (store, lease) => store.leases.extend(lease),
  release: (store, lease) => store.leases.release(lease),
};

describe('a superseded owner is fenced for good', () => {
  test.each(Object.entries(underLease))('%s', (_, act) => {
    using both = pair();
    const lease = both.one.leases.acquire('main', alive, { ttlMs: 1 });
    both.time.two = start + 1;
    let next = both.two.leases.acquire('main', { id: 'next' }, { ttlMs: 1 });
    for (let round = 0; round < 3; round += 1) {
      const before = both.two.sessions.find('main');
      expect(refusal(() => act(both.one, lease)).code).toBe('TAPE_FENCED');
      expect(both.two.sessions.find('main')).toEqual(before);
      // Neither when its own number appears again in another life, nor when the session has no owner.
      expect(both.two.leases.release(next)).toBe(true);
      expect(refusal(() => act(both.one, lease)).code).toBe('TAPE_FENCED');
      next = both.two.leases.acquire('main', alive, { ttlMs: 1 });
    }
    expect(both.two.entries.append('main', [user('mine')], { lease: next }).added).toBe(1);
    expect([...both.two.verify()]).toEqual([]);
  });

  test.each<[string, (store: SqliteTapeStore) => unknown]>([
    ['append', (store) => store.entries.append('main', [user('x')])],
    ['result', (store) => store.entries.append('main', [result('x')])],
    ['merge', (store) => store.lineage.merge('child', { text: 'x' })],
    ['rewind', (store) => store.history.rewind('main', 1)],
    ['redact', (store) => store.entries.redact('main', 2, 'x')],
    ['drainOwnerless', (store) => store.inbox.drain('main')],
  ])('after one %s without a lease, once its time is over, and not before', (_, act) => {
    using both = pair();
    const lease = both.one.leases.acquire('main', alive, { ttlMs: 1000 });
    try {
      expect(act(both.two)).toBe(undefined);
    } catch (error) {
      expect(error).toMatchObject({ code: 'TAPE_BUSY' });
    }
    expect(both.one.entries.append('main', [user('mine')], { lease }).added).toBe(1);
    both.time.two = start + 1000;
    act(both.two);
    // A merge that was just done is a repetition, which needs no right to write.
    for (const name of ['append', 'rewind', 'settle', 'drain', 'extend', 'release'])
      expect(refusal(() => underLease[name]?.(both.one, lease)).code, name).toBe('TAPE_FENCED');
  });
});

describe('with real processes', () => {
  test('a process that is stopped past its lease and resumed is fenced', async () => {
    using both = pair();
    await using worker = await startStore();
    await worker.ask('open', { path: both.path });
    const lease = await worker.ask<Lease>('acquire', { session: 'main', ttlMs: 30_000 });
    worker.signal('SIGSTOP');
    both.time.two = lease.expiresAt - 1;
    expect(refusal(() => both.two.leases.acquire('main', alive)).code).toBe('TAPE_BUSY');
    both.time.two = lease.expiresAt;
    const next = both.two.leases.acquire('main', alive);
    const pending = worker.call('entries.append', 'main', [user('late')], { lease });
    both.two.entries.append('main', [user('next')], { lease: next });
    worker.signal('SIGCONT');
    await expect(pending).rejects.toMatchObject({ code: 'TAPE_FENCED' });
    await expect(worker.call('leases.extend', lease)).rejects.toMatchObject({ code: 'TAPE_FENCED' });
    await expect(worker.call('entries.append', 'main', [user('one-shot')])).rejects.toMatchObject({
      code: 'TAPE_BUSY',
    });
    expect(both.two.sessions.find('main')?.head).toBe(3);
  });

  test.runIf(canUnshare && sized(false, true, true))(
    'a process in another PID namespace is not taken for dead, and is fenced when its time is over (needs unshare)',
    async () => {
      using both = pair();
      let later = 0;
      const uptime = () => Number(process.hrtime.bigint() / 1_000_000n) + later;
      using near = openTapeStore(both.path, { durability: 'fast', uptime });
      await using container = await startStore({ under: unshare });
      await container.ask('open', { path: both.path });
      const lease = await container.ask<Lease>('acquire', { session: 'main', ttlMs: hour });
      expect(refusal(() => near.leases.acquire('main', alive))).toMatchObject({
        code: 'TAPE_BUSY',
        data: { owner: { pid: 1 } },
      });
      expect(refusal(() => near.entries.append('main', [user('x')])).code).toBe('TAPE_BUSY');
      await container.call('entries.append', 'main', [user('mine')], { lease });
      // Nor does it take this process for dead, whose number means nothing there.
      near.leases.acquire('other', processOwner('near'), { ttlMs: 24 * hour });
      await expect(container.ask('acquire', { session: 'other', ttlMs: 1500 })).rejects.toMatchObject({
        code: 'TAPE_BUSY',
      });
      await container.kill();
      expect(refusal(() => near.leases.acquire('main', alive)).code).toBe('TAPE_BUSY');
      later = hour;
      expect(near.leases.list()).toHaveLength(1);
      expect(near.leases.acquire('main', alive).epoch).toBe(lease.epoch + 1);
      expect([...near.verify()]).toEqual([]);
    },
  );

  test('a killed process is replaced at once, whatever its heartbeat says', async () => {
    using both = pair();
    await using worker = await startStore();
    await worker.ask('open', { path: both.path });
    const lease = await worker.ask<Lease>('acquire', { session: 'main', ttlMs: 24 * hour });
    both.time.two = Date.now();
    expect(refusal(() => both.two.leases.acquire('main', alive)).code).toBe('TAPE_BUSY');
    await worker.kill();
    expect(both.two.leases.acquire('main', alive).epoch).toBe(lease.epoch + 1);
  });

  test(
    'that take and release one session in turn never write into each other’s runs',
    async () => {
      using both = pair();
      await using workers = await startStores(3);
      for (const worker of workers) await worker.ask('open', { path: both.path });
      const count = sized(20, 30, 5_000);
      const held = await Promise.all(
        workers.map((worker) =>
          worker.ask<[string, number][]>('hold', { session: 'main', count, entries: 3 }),
        ),
      );
      const epochs = held.map((own) => own.map(([, epoch]) => epoch));
      expect(new Set(epochs.flat()).size).toBe(3 * count);
      for (const own of epochs) expect(own).toEqual(own.toSorted((a, b) => a - b));
      const runs = [...both.two.entries.read('main', { from: 3 })].map(
        ({ payload }) => /run (\S+) (\d)/.exec(JSON.stringify(payload))?.slice(1) ?? [],
      );
      expect(runs.length).toBe(3 * 3 * count);
      for (let at = 0; at < runs.length; at += 3)
        expect(runs.slice(at, at + 3)).toEqual(['1', '2', '3'].map((n) => [runs[at]?.[0], n]));
      expect([...both.two.verify()]).toEqual([]);
    },
    sized(60_000, 180_000, 900_000),
  );
});
