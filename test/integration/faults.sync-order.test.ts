import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type FaultPlace, faultPlace, workloads } from '../support/fault-acts.ts';
import { program } from '../support/programs.ts';
import { type Call, skipsTracing, trace } from '../support/strace.ts';
import { tempDir } from '../support/temp-dir.ts';

/** Every acknowledgement follows its sync, in an order that a power cut cannot reverse. */
const syscalls = [
  ...['write', 'pwrite64', 'fsync', 'fdatasync', 'mkdir', 'mkdirat', 'open', 'openat'],
  ...['link', 'linkat', 'rename', 'renameat', 'renameat2', 'access', 'faccessat', 'faccessat2'],
];

describe.skipIf(skipsTracing('the order of syncs'))('the order of syncs', () => {
  test.each(['append', 'fork', 'merge', 'import'])(
    '%s is acknowledged after its log is synced',
    async (name) => {
      using dir = tempDir();
      const { acts, place } = await traced(name, dir.path);
      expect([...acts.keys()]).toEqual([...(workloads[name]?.acts ?? []).map((act) => act.name), 'close']);
      for (const [act, calls] of acts) {
        if (act === 'close') continue;
        // After its line, only the state of the graph file is remembered, which a later comparison can find again.
        const line = last(calls, /^p?write/, place.graph);
        const own = line === -1 ? calls : calls.slice(0, line);
        expect(last(own, /^pwrite/, `${place.db}-wal`), `${act} writes the log`).toBeGreaterThanOrEqual(0);
        expect(last(own, /sync$/, `${place.db}-wal`)).toBeGreaterThan(
          last(own, /^pwrite/, `${place.db}-wal`),
        );
      }
    },
  );

  test.each(['fork', 'merge', 'import'])(
    '%s is acknowledged after its line, which follows its log',
    async (name) => {
      using dir = tempDir();
      const { acts, place } = await traced(name, dir.path);
      for (const [act, calls] of acts) {
        if (act === 'close') continue;
        const line = last(calls, /^p?write/, place.graph);
        expect(line, `${act} writes its line`).toBeGreaterThan(last(calls, /sync$/, `${place.db}-wal`));
        expect(last(calls, /sync$/, place.graph)).toBeGreaterThan(line);
      }
    },
  );

  test('a new home and its files are synced into their directories before the first acknowledgement', async () => {
    using dir = tempDir();
    const { acts, place } = await traced('create', dir.path);
    const opening = acts.get('open') ?? [];
    const made = opening.findIndex(
      ({ syscall, text }) => syscall.startsWith('mkdir') && text.includes(`"${place.dir}"`),
    );
    expect(made).toBeGreaterThanOrEqual(0);
    expect(last(opening, /sync$/, dirname(place.dir))).toBeGreaterThan(made);
    const before = [...opening, ...(acts.get('new') ?? [])];
    for (const file of [place.db, `${place.db}-wal`, place.graph]) {
      const created = before.findIndex(({ text }) => text.includes(`"${file}"`) && text.includes('O_CREAT'));
      expect(created, `${file} is created`).toBeGreaterThanOrEqual(0);
      expect(last(before, /sync$/, place.dir), `${file} is in its directory`).toBeGreaterThan(created);
    }
  });

  test('a backup gets its name after its bytes are synced, and is acknowledged after its name is synced', async () => {
    using dir = tempDir();
    const { acts, place } = await traced('backup', dir.path);
    const calls = acts.get('copy') ?? [];
    const named = calls.findIndex(
      ({ syscall, text }) => /^(?:link|rename)/.test(syscall) && text.includes(`"${place.copy}"`),
    );
    expect(named).toBeGreaterThanOrEqual(0);
    const draft = `${place.copy}.000000000000.part`;
    expect(last(calls, /^pwrite/, draft)).toBeGreaterThanOrEqual(0);
    expect(last(calls.slice(0, named), /sync$/, draft)).toBeGreaterThan(last(calls, /^pwrite/, draft));
    expect(last(calls, /sync$/, dirname(place.copy))).toBeGreaterThan(named);
  });

  test('a checkpoint syncs the log before it writes the database, and the database before it empties the log', async () => {
    using dir = tempDir();
    const { acts, place } = await traced('checkpoint', dir.path);
    for (const act of ['checkpoint', 'again']) {
      const calls = acts.get(act) ?? [];
      const pages = calls.findIndex(
        ({ syscall, text }) => syscall === 'pwrite64' && text.includes(`<${place.db}>`),
      );
      const synced = calls.findIndex(
        ({ syscall, text }) => syscall.endsWith('sync') && text.includes(`<${place.db}-wal>`),
      );
      expect(pages, `${act} writes the database`).toBeGreaterThan(synced);
      expect(synced).toBeGreaterThanOrEqual(0);
      expect(last(calls, /sync$/, place.db)).toBeGreaterThan(last(calls, /^pwrite/, place.db));
    }
  });

  test('fast appends sync no log, and forks still sync their line', async () => {
    using dir = tempDir();
    const appends = await traced('append', dir.file('append'), 'fast');
    // The first one begins the log, and that is synced once.
    expect(last(appends.acts.get('beta') ?? [], /sync$/, `${appends.place.db}-wal`)).toBe(-1);
    const forks = await traced('fork', dir.file('fork'), 'fast');
    const calls = forks.acts.get('beta') ?? [];
    expect(last(calls, /sync$/, forks.place.graph)).toBeGreaterThan(
      last(calls, /^p?write/, forks.place.graph),
    );
  });
});

/** The calls of a worker for each act, up to its acknowledgement. */
async function traced(
  name: string,
  dir: string,
  durability = 'full',
): Promise<{ place: FaultPlace; acts: ReadonlyMap<string, readonly Call[]> }> {
  const place = faultPlace(dir);
  mkdirSync(dirname(place.copy), { recursive: true });
  workloads[name]?.prepare(place);
  const { code, stderr, calls } = await trace([...program('fault-worker.ts'), dir, name, durability], {
    syscalls,
    log: join(dir, 'log'),
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const acts = new Map<string, readonly Call[]>();
  let from = calls.findIndex(({ text }) => text.includes('/marker"')) + 1;
  for (const [i, { syscall, text }] of calls.entries()) {
    const act = /\{\\"act\\":\\"([^"\\]+)\\"/.exec(text)?.[1];
    if (i < from || syscall !== 'write' || !text.startsWith('write(1<') || act === undefined) continue;
    acts.set(act, calls.slice(from, i));
    from = i + 1;
  }
  return { place, acts };
}

/** Where the last call on a file's descriptor is, or -1. */
function last(calls: readonly Call[], syscall: RegExp, path: string): number {
  return calls.findLastIndex((call) => syscall.test(call.syscall) && call.text.includes(`<${path}>`));
}
