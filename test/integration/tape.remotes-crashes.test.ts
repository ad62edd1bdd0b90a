import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { assistant, openTapeStore, type SqliteTapeStore, user } from '@tapedeck/tape';
import { remotePoints } from '@tapedeck/tape/crash-point';
import { openRemote, pull, push } from '@tapedeck/tape/remotes';
import { expect, test } from 'vitest';
import { diskFault, smallDisk } from '../support/obstacle.ts';
import { startProcess } from '../support/process.ts';
import { fillForForgeries } from '../support/random-forgery.ts';
import { SharingHome } from '../support/remotes.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';

const timeout = sized(300_000, 600_000, 6 * 3_600_000);

const fault = (() => {
  using dir = tempDir();
  return diskFault(dir.path);
})();
if (fault !== undefined) console.warn(`skipped: full disks; ${fault}`);

/** Pushes, and pulls, and dies at a point as a kill does. */
const sharer = `
  import { openTapeStore } from '@tapedeck/tape';
  import { onCrashPoint } from '@tapedeck/tape/crash-point';
  import { openRemote, pull, push } from '@tapedeck/tape/remotes';
  const [db, url, state, act, point] = process.argv.slice(1);
  using store = openTapeStore(db, { secrets: [] });
  onCrashPoint((at) => { if (at === point) process.kill(process.pid, 'SIGKILL'); });
  const remote = await openRemote(url, { state });
  if (act === 'push') console.log('pushed ' + JSON.stringify(await push(store, remote, { state, secrets: [] })));
  else console.log('pulled ' + JSON.stringify(await pull(store, remote, { state })));
`;

const share = (dir: TempDir, home: string, act: 'push' | 'pull', point = 'none') =>
  startProcess(sharer, dir.file(`${home}.db`), dir.file('packs'), dir.file(`${home}-state`), act, point);

/** The same in this process. */
async function shareHere(dir: TempDir, home: string, act: 'push' | 'pull'): Promise<void> {
  using store = openTapeStore(dir.file(`${home}.db`), { secrets: [] });
  const state = dir.file(`${home}-state`);
  const remote = await openRemote(dir.file('packs'), { state });
  if (act === 'push') await push(store, remote, { state, secrets: [] });
  else await pull(store, remote, { state });
}

function facesOf(store: SqliteTapeStore): unknown {
  return [store.bundles.heads(), [...store.verify()].map(({ message }) => message)];
}

/** The state of a database in a directory. */
function stateOf(dir: TempDir, home: string): unknown {
  using store = openTapeStore(dir.file(`${home}.db`), { secrets: [] });
  return facesOf(store);
}

test('a kill at any place of a push or a pull leaves a remote and homes that the next one completes', {
  timeout,
}, async () => {
  const all = [...remotePoints, 'bundle/entries', 'bundle/verified', 'commit/before', 'commit/after'];
  for (const point of sized(all.slice(1, 4), all, all)) {
    using dir = tempDir();
    {
      using store = openTapeStore(dir.file('a.db'), { secrets: [] });
      fillForForgeries(store);
    }
    for (const [home, act] of [
      ['a', 'push'],
      ['b', 'pull'],
    ] as const) {
      await using killed = share(dir, home, act, point);
      await killed.done().catch(() => undefined);
      await shareHere(dir, home, act);
    }
    expect([point, stateOf(dir, 'b')]).toEqual([point, stateOf(dir, 'a')]);
    const packs = readdirSync(dir.file('packs')).filter((name) => name.endsWith('.zst'));
    // A push that was killed between its pack and its memory of it finds the pack.
    expect([point, packs.length]).toEqual([point, 1]);
  }
});

test('of pushes by many processes at once each number is given once, and nothing is lost', {
  timeout,
}, async () => {
  using dir = tempDir();
  const homes = Array.from({ length: sized(2, 4, 8) }, (_, n) => `home${n}`);
  for (const [n, home] of homes.entries()) {
    using store = openTapeStore(dir.file(`${home}.db`), { secrets: [] });
    for (let i = 0; i < 5; i += 1) {
      store.sessions.open(`session-${n}-${i}`);
      store.entries.append(`session-${n}-${i}`, [user(`By ${home}.`)]);
    }
  }
  const pushes = homes.map((home) => share(dir, home, 'push'));
  try {
    await Promise.all(pushes.map((one) => one.done()));
  } finally {
    for (const one of pushes) await one[Symbol.asyncDispose]();
  }
  const names = readdirSync(dir.file('packs'));
  expect(names.sort()).toEqual(homes.map((_, n) => `${String(n + 1).padStart(8, '0')}.bundle.zst`));
  await using pulled = share(dir, 'all', 'pull');
  await pulled.done();
  using store = openTapeStore(dir.file('all.db'), { secrets: [] });
  expect(store.count().sessions).toBe(5 * homes.length);
  expect([...store.verify()]).toEqual([]);
});

if (fault === undefined)
  test('a full disk at the remote, or of the home, is said to be full, and leaves no pack and no part of one', {
    timeout,
  }, async () => {
    using dir = tempDir();
    using disk = smallDisk(dir.path);
    const pushed = () =>
      startProcess(sharer, dir.file('a.db'), join(disk.path, 'packs'), dir.file('of-disk'), 'push', 'none');
    {
      using store = openTapeStore(dir.file('a.db'), { secrets: [] });
      store.sessions.open('main');
      const random = seeded(1);
      const noise = () =>
        Array.from({ length: 700_000 }, () => String.fromCharCode(33 + random.below(90))).join('');
      store.entries.append('main', [user(noise())]);
      await using small = pushed();
      await small.done();
      for (let i = 0; i < 7; i += 1) store.entries.append('main', [user(noise())]);
    }
    const before = readdirSync(join(disk.path, 'packs'));
    await using full = pushed();
    await full.done().catch(() => undefined);
    expect(full.printed()).toMatch(/TAPE_REMOTE_FAILED/);
    expect(full.printed()).toMatch(/ENOSPC|no space/);
    expect(readdirSync(join(disk.path, 'packs'))).toEqual(before);
    // With room, the same push is done.
    await using roomy = share(dir, 'a', 'push');
    await roomy.done();
    // The home is on the full disk: what cannot be taken in is not there in part.
    const home = join(disk.path, 'home');
    const tiny = startProcess(
      sharer,
      join(home, 'tape.db'),
      dir.file('packs'),
      join(home, 'state'),
      'pull',
      'none',
    );
    await tiny.done().catch(() => undefined);
    expect(tiny.printed()).toMatch(/TAPE_IO/);
    await tiny[Symbol.asyncDispose]();
    if (existsSync(join(home, 'tape.db'))) {
      using store = openTapeStore(join(home, 'tape.db'), { secrets: [] });
      expect([store.count().entries, [...store.verify()]]).toEqual([0, []]);
    }
  });

test('homes that share at random agree on all that did not go on in two ways, and verify', {
  timeout,
}, async () => {
  const seed = Number(process.env.TAPEDECK_SEED ?? 20261126);
  for (let round = 0; round < sized(2, 2, 1_000); round += 1) {
    const random = seeded(seed + round);
    using dir = tempDir();
    mkdirSync(dir.file('packs'));
    const homes = ['a', 'b', 'c'].map((name) => new SharingHome(dir, name));
    try {
      for (let n = 0; n < 60; n += 1) await actAtRandom(homes[random.below(3)] as SharingHome, random, n);
      for (let i = 0; i < 2; i += 1)
        for (const home of homes) {
          await home.push();
          await home.pull();
        }
      for (const home of homes) {
        const { failed } = await home.pull();
        expect([seed + round, failed, home.damage()]).toEqual([seed + round, [], []]);
      }
      const refused = new Set<string>();
      for (const home of homes)
        for (const { refused: left } of [await home.push(), await home.pull()])
          for (const { id } of left) refused.add(id);
      const known = homes.map((home) =>
        home.store.bundles
          .heads()
          .filter(({ id }) => !refused.has(id))
          .map(({ id, hash }) => `${id} ${hash}`)
          .sort(),
      );
      expect([seed + round, known[1]]).toEqual([seed + round, known[0]]);
      expect([seed + round, known[2]]).toEqual([seed + round, known[0]]);
    } finally {
      for (const home of homes) home[Symbol.dispose]();
    }
  }
});

async function actAtRandom(home: SharingHome, random: ReturnType<typeof seeded>, n: number): Promise<void> {
  const { store } = home;
  // In an order that does not depend on the clock.
  const sessions = store.sessions.list().toSorted((x, y) => (x.id < y.id ? -1 : 1));
  const one = sessions[random.below(sessions.length)];
  const act = random.below(10);
  if (act === 0) await home.push();
  else if (act === 1) await home.pull();
  else if (act === 2 || one === undefined) {
    const name = `s${n}-${home.state.slice(-7)}`;
    store.sessions.open(name);
    store.entries.append(name, [user(`Begin ${n}.`)]);
  } else if (act === 3) store.lineage.fork(one.session, { name: `f${n}-${home.state.slice(-7)}` });
  else if (act === 4 && one.parent !== undefined && one.delivery === undefined) {
    store.entries.append(one.session, [assistant(`Result ${n}.`)]);
    store.lineage.merge(one.session);
  } else if (act === 5) {
    await home.push({ sessions: [one.session] });
  } else if (one.lifecycle === 'active') store.entries.append(one.session, [user(`More ${n}.`)]);
}
