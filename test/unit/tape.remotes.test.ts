import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { assistant, user } from '@tapedeck/tape';
import { onCrashPoint, remotePoints } from '@tapedeck/tape/crash-point';
import { remoteUrl } from '@tapedeck/tape/remotes';
import { afterEach, expect, test } from 'vitest';
import { recordsOf, sealed } from '../support/hostile-bundle.ts';
import { fillForForgeries } from '../support/random-forgery.ts';
import { packsAt, SharingHome } from '../support/remotes.ts';
import { tempDir } from '../support/temp-dir.ts';

afterEach(() => onCrashPoint(undefined));

const codes = (of: readonly { readonly session: string; readonly error: { readonly code: string } }[]) =>
  of.map(({ session, error }) => `${session} ${error.code}`);

test('what one home pushes another pulls, with equal heads and views, and both send what is new alone', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  fillForForgeries(a.store);
  const dry = await a.push({ dryRun: true });
  const first = await a.push();
  expect([dry.pack, dry.bytes, dry.entries, readdirSync(dir.path)]).toEqual([
    null,
    first.bytes,
    first.entries,
    expect.arrayContaining(['packs']),
  ]);
  expect(first).toMatchObject({ pack: '00000001.bundle.zst', refused: [], behind: [] });
  expect((await b.pull({ dryRun: true })).sessions).toHaveLength(4);
  expect(b.store.count().sessions).toBe(0);
  expect(await b.pull()).toMatchObject({ packs: 1, entries: first.entries, refused: [], failed: [] });
  expect(b.faces()).toEqual(a.faces());
  expect(await a.push()).toMatchObject({ pack: null, bytes: 0, sessions: [] });
  expect(await b.push()).toMatchObject({ pack: null, sessions: [] });
  expect(await b.pull()).toMatchObject({ packs: 0, bytes: 0 });
  b.store.entries.append('main', [user('From b.')]);
  b.store.lineage.fork('main', { name: 'idea' });
  b.store.sessions.update('old', { lifecycle: 'active' });
  const second = await b.push();
  expect(second).toMatchObject({ entries: 2, lines: 2, pack: '00000002.bundle.zst' });
  expect(await a.pull()).toMatchObject({ packs: 1, entries: 2, lines: 2 });
  expect(a.faces()).toEqual(b.faces());
  expect(a.store.bundles.heads()).toEqual(b.store.bundles.heads());
  expect([...a.damage(), ...b.damage()]).toEqual([]);
  // One session goes with its ancestors.
  using c = new SharingHome(dir, 'c', { url: dir.file('one') });
  fillForForgeries(c.store);
  expect((await c.push({ sessions: ['child'] })).sessions.map(({ session }) => session)).toEqual([
    'main',
    'child',
  ]);
  expect(readdirSync(dir.path).filter((name) => name.includes('work-'))).toEqual([]);
});

test('of two pushes at once one is refused until it has pulled, and sessions that did not grow elsewhere are sent', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  fillForForgeries(a.store);
  await a.push();
  await b.pull();
  a.store.entries.append('main', [user('From a.')]);
  b.store.entries.append('main', [user('From b.')]);
  b.store.entries.append('old', [user('Also.')]);
  // The other one is first, when this one has looked.
  let others: Promise<unknown> | undefined;
  onCrashPoint((point) => {
    if (point !== 'push/packed' || others !== undefined) return;
    others = a.push();
  });
  const pushed = await b.push();
  await others;
  onCrashPoint(undefined);
  const lost = pushed.refused.length > 0 ? pushed : await a.push();
  expect(codes(lost.refused)).toEqual(['main TAPE_DIVERGED']);
  expect(lost.refused[0]?.error.data).toMatchObject({ remote: true });
  const behind = pushed.refused.length > 0 ? b : a;
  expect(codes((await behind.pull()).refused)).toEqual(['main TAPE_DIVERGED']);
  expect([...a.damage(), ...b.damage()]).toEqual([]);
});

test('a home that has nothing new of a session which grew elsewhere is behind, and is not refused', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  fillForForgeries(a.store);
  await a.push();
  await b.pull();
  a.store.entries.append('main', [user('More.')]);
  await a.push();
  b.store.entries.append('old', [user('Other.')]);
  expect(await b.push()).toMatchObject({ behind: ['main'], refused: [], entries: 1 });
  await b.pull();
  await a.pull();
  expect(a.faces()).toEqual(b.faces());
});

test('what was forked before two ways parted is pushed and pulled without them', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  fillForForgeries(a.store);
  await a.push();
  await b.pull();
  a.store.entries.append('main', [user('From a.')]);
  await a.push();
  b.store.lineage.fork('main', { name: 'before' });
  b.store.entries.append('main', [user('From b.')]);
  b.store.lineage.fork('main', { name: 'after' });
  const pushed = await b.push();
  expect(codes(pushed.refused)).toEqual(['main TAPE_DIVERGED', 'after TAPE_DIVERGED']);
  expect(pushed.sessions.map(({ session }) => session)).toEqual(['before']);
  expect((await a.pull()).sessions.map(({ session }) => session)).toEqual(['before']);
  expect([...a.damage(), ...b.damage()]).toEqual([]);
});

test('a link to a session that is not pushed waits for it, and is not offered at each push', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  for (const name of ['copy', 'source']) {
    a.store.sessions.open(name);
    a.store.entries.append(name, [user('Go.')]);
  }
  await a.push({ sessions: ['copy'] });
  a.store.lineage.link('copy', 'source');
  expect(await a.push({ sessions: ['copy'] })).toMatchObject({ pack: null, lines: 0, sessions: [] });
  await b.pull();
  expect(b.store.sessions.find('copy')?.link).toBeUndefined();
  expect((await a.push()).sessions.map(({ session }) => session)).toEqual(['copy', 'source']);
  await b.pull();
  expect(b.store.sessions.find('copy')?.link?.parent).toBe('source');
  expect(await a.push()).toMatchObject({ pack: null, sessions: [] });
  a.store.lineage.link('copy', null);
  expect(await a.push({ sessions: ['copy'] })).toMatchObject({ lines: 1 });
});

test('a child that was pulled merges once, wherever it is merged', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  a.store.sessions.open('main');
  a.store.entries.append('main', [user('Go.')]);
  a.store.lineage.fork('main', { name: 'one' });
  a.store.lineage.fork('main', { name: 'two' });
  for (const child of ['one', 'two']) a.store.entries.append(child, [assistant(`Done by ${child}.`)]);
  await a.push();
  await b.pull();
  const here = b.store.lineage.merge('one');
  expect(here.repeated).toBe(false);
  await b.push();
  await a.pull();
  // It came with the merge: to merge it again is to repeat it.
  expect(a.store.lineage.merge('one')).toMatchObject({ repeated: true, seq: here.seq });
  expect(a.faces()).toEqual(b.faces());
  // Both merge the other one: each main went on in its own way, and neither merges it twice.
  a.store.lineage.merge('two');
  b.store.lineage.merge('two');
  await a.push();
  expect(codes((await b.push()).refused)).toContain('main TAPE_DIVERGED');
  expect(codes((await b.pull()).refused)).toEqual(['main TAPE_DIVERGED']);
  for (const { store } of [a, b]) {
    expect(store.lineage.merge('two').repeated).toBe(true);
    const marks = [...store.entries.read('main', { own: true })].filter(({ key }) =>
      key?.startsWith('merge:'),
    );
    expect(marks.length).toBe(new Set(marks.map(({ key }) => key)).size);
  }
  expect([...a.damage(), ...b.damage()]).toEqual([]);
});

test('a child is pulled whose parent went on in two ways, and a parent is left out that merged another way of its child', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  for (const name of ['main', 'other']) {
    a.store.sessions.open(name);
    a.store.entries.append(name, [user('Plan it.')]);
    a.store.lineage.fork(name, { name: `${name}-child` });
  }
  await a.push();
  await b.pull();
  a.store.entries.append('main', [user('From a.')]);
  a.store.entries.append('other-child', [assistant('From a.')]);
  await a.push();
  b.store.entries.append('main', [user('From b.')]);
  for (const name of ['main-child', 'other-child']) {
    b.store.entries.append(name, [assistant('From b.')]);
    b.store.lineage.merge(name);
  }
  expect(codes((await b.push()).refused)).toEqual(['main TAPE_DIVERGED', 'other-child TAPE_DIVERGED']);
  const pulled = await a.pull();
  expect(pulled).toMatchObject({ failed: [], sessions: [{ session: 'main-child', entries: 1 }] });
  expect(codes(pulled.refused)).toEqual(['other TAPE_DIVERGED']);
  expect(pulled.refused[0]?.error.message).toBe(
    "cannot import 'other': it merges 'other-child', which went on in another way here: @4 is another entry",
  );
  expect([a.damage(), b.damage()]).toEqual([[], []]);
});

test('another way of a child than the one that its parent here has merged is left out', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  using c = new SharingHome(dir, 'c');
  a.store.sessions.open('main');
  a.store.entries.append('main', [user('Plan it.')]);
  a.store.lineage.fork('main', { name: 'child' });
  await a.push();
  await b.pull();
  for (const [home, answer] of [
    [a, 'From a.'],
    [b, 'From b.'],
  ] as const)
    home.store.entries.append('child', [assistant(answer)]);
  b.store.lineage.merge('child');
  await b.push({ sessions: ['main'] });
  a.store.sessions.open('other');
  await a.push();
  const pulled = await c.pull();
  expect(pulled.failed).toEqual([]);
  expect(codes(pulled.refused)).toEqual(['child TAPE_DIVERGED']);
  expect(pulled.refused[0]?.error.message).toBe(
    "cannot import 'child': it went on in another way where 'main' here merged it: @4 is another entry",
  );
  expect(c.store.sessions.find('other')).toBeDefined();
  expect(c.damage()).toEqual([]);
});

test('a session whose name is taken here is left out until the name is free', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  fillForForgeries(a.store);
  b.store.sessions.open('main');
  await a.push();
  const pulled = await b.pull();
  expect(codes(pulled.refused).slice(0, 2)).toEqual(['main TAPE_EXISTS', 'child TAPE_MISSING_BASE']);
  expect(pulled.sessions.map(({ session }) => session)).toEqual(['old']);
  b.store.sessions.update('main', { lifecycle: 'destroyed' });
  expect(await b.pull()).toMatchObject({ refused: [] });
  expect(await b.pull()).toMatchObject({ packs: 0 });
  expect(b.store.sessions.find('child')?.headHash).toBe(a.store.sessions.find('child')?.headHash);
});

test('an error at any place of a push or a pull loses nothing, and doing it again completes it', async () => {
  using dir = tempDir();
  for (const point of remotePoints) {
    const url = dir.file(`packs-${point.replace('/', '-')}`);
    const name = point.replace('/', '-');
    using a = new SharingHome(dir, `${name}-a`, { url, salt: 'a' });
    using b = new SharingHome(dir, `${name}-b`, { url, salt: 'b' });
    fillForForgeries(a.store);
    let passed = 0;
    onCrashPoint((at) => {
      if (at !== point) return;
      passed += 1;
      if (passed === 1) throw new Error('stopped');
    });
    const tried = async (act: () => Promise<unknown>) => await act().catch((error: Error) => error.message);
    const done = [await tried(() => a.push()), await tried(() => b.pull())];
    onCrashPoint(undefined);
    expect([point, done.filter((one) => one === 'stopped')]).toEqual([point, ['stopped']]);
    await a.push();
    await b.pull();
    expect([point, b.faces()]).toEqual([point, a.faces()]);
    expect(readdirSync(url).filter((file) => file.endsWith('.part'))).toEqual([]);
    expect(readdirSync(url)).toHaveLength(1);
    expect(readdirSync(a.state)).toEqual(['packs.jsonl']);
  }
});

test('a remote that vanishes, loses a pack, or has another one in its place is named, and nothing is lost', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  await expect(b.pull()).rejects.toMatchObject({ code: 'TAPE_REMOTE_FAILED', data: { missing: true } });
  fillForForgeries(a.store);
  using below = new SharingHome(dir, 'c', { url: dir.file('none/packs') });
  below.store.sessions.open('main');
  await expect(below.push()).rejects.toMatchObject({
    code: 'TAPE_REMOTE_FAILED',
    message: expect.stringContaining(`there is no directory '${dir.file('none')}'`),
  });
  await a.push();
  a.store.entries.append('main', [user('More.')]);
  await a.push();
  const [first = '', second = ''] = readdirSync(dir.file('packs')).map((name) =>
    join(dir.file('packs'), name),
  );
  renameSync(dir.file('packs'), dir.file('elsewhere'));
  // A disk that is not mounted: nothing is made in its place.
  await expect(a.push()).rejects.toMatchObject({ code: 'TAPE_REMOTE_FAILED' });
  expect(readdirSync(dir.path)).not.toContain('packs');
  mkdirSync(dir.file('packs'));
  await expect(a.push()).rejects.toMatchObject({
    code: 'TAPE_BAD_REMOTE',
    data: { pack: '00000001.bundle.zst' },
  });
  rmSync(dir.file('packs'), { recursive: true });
  renameSync(dir.file('elsewhere'), dir.file('packs'));
  // In the middle of a pull.
  onCrashPoint((point) => {
    if (point === 'pull/known') renameSync(dir.file('packs'), dir.file('elsewhere'));
  });
  const gone = await b.pull();
  onCrashPoint(undefined);
  expect(gone.failed.map(({ pack, error }) => [pack, error.code])).toEqual([
    ['00000002.bundle.zst', 'TAPE_BAD_REMOTE'],
  ]);
  renameSync(dir.file('elsewhere'), dir.file('packs'));
  const whole = readFileSync(second);
  for (const bytes of [whole.subarray(0, -9), Buffer.from(whole).fill(1, 100, 110)]) {
    writeFileSync(second, bytes);
    expect((await b.pull()).failed.map(({ error }) => error.code)).toEqual(['TAPE_BAD_BUNDLE']);
    expect([...b.damage()]).toEqual([]);
  }
  writeFileSync(second, whole);
  expect(await b.pull()).toMatchObject({ entries: 1, failed: [] });
  expect(b.faces()).toEqual(a.faces());
  // Known by its size, and by its content when it is read again.
  truncateSync(first, 100);
  await expect(b.pull()).rejects.toMatchObject({ code: 'TAPE_BAD_REMOTE' });
});

test('what is kept of a remote can be lost, or be that of another home', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  fillForForgeries(a.store);
  await a.push();
  await b.pull();
  const index = join(b.state, 'packs.jsonl');
  for (const text of ['', '{"name":"00000001', 'null\n[]\n{}\n', '\0\0']) {
    writeFileSync(index, text);
    expect(await b.push()).toMatchObject({ pack: null });
    expect(await b.pull()).toMatchObject({ entries: 0, lines: 0, refused: [] });
  }
  appendFileSync(index, '{"torn');
  a.store.entries.append('main', [user('More.')]);
  await a.push();
  expect(await b.pull()).toMatchObject({ packs: 1, entries: 1 });
  expect(await b.pull()).toMatchObject({ packs: 0 });
  // An older home, with what a newer one knew.
  using c = new SharingHome(dir, 'c');
  mkdirSync(c.state);
  copyFileSync(index, join(c.state, 'packs.jsonl'));
  expect(await c.pull()).toMatchObject({ packs: 2, failed: [] });
  expect(c.faces()).toEqual(a.faces());
});

test('what has the name of a pack and is no file is refused as what it is, and copies of a synced directory are read', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  fillForForgeries(a.store);
  await a.push();
  const packs = dir.file('packs');
  const pack = join(packs, '00000001.bundle.zst');
  const remote = await packsAt(packs, { state: a.state });
  for (const [word, make] of [
    ['a symbolic link', (path: string) => symlinkSync('/etc/passwd', path)],
    ['a FIFO', (path: string) => execFileSync('mkfifo', [path])],
    ['a directory', (path: string) => mkdirSync(path)],
  ] as const) {
    const path = join(packs, '00000002.bundle.zst');
    make(path);
    await expect(a.push()).rejects.toMatchObject({
      code: 'TAPE_BAD_REMOTE',
      message: expect.stringContaining(word),
    });
    // It took the place of one that was listed.
    const listed = { number: 2, name: '00000002.bundle.zst', bytes: 5 };
    await expect(remote.read(listed, dir.file('copy'))).rejects.toMatchObject({ code: 'TAPE_BAD_REMOTE' });
    rmSync(path, { recursive: true });
    rmSync(dir.file('copy'), { force: true });
  }
  for (const name of [
    'notes.txt',
    '1.bundle.zst',
    '000000001.bundle.zst',
    '.00000003.aaaaaaaaaaaa.part',
    '00000001.bundle.zst.taken',
  ])
    writeFileSync(join(packs, name), 'x');
  expect(await a.push()).toMatchObject({ pack: null });
  using b = new SharingHome(dir, 'b');
  for (const name of [
    '00000001 (copy).bundle.zst',
    '00000001.bundle.sync-conflict-20261126-1.zst',
    '00000001.bundle (1).zst',
  ])
    copyFileSync(pack, join(packs, name));
  expect(await b.pull()).toMatchObject({ packs: 4, failed: [], refused: [] });
  expect(b.faces()).toEqual(a.faces());
  writeFileSync(join(packs, '00000009.bundle.zst'), 'no bundle');
  expect((await b.pull()).failed.map(({ error }) => error.code)).toEqual(['TAPE_BAD_BUNDLE']);
  b.store.entries.append('main', [user('x')]);
  await expect(b.push()).rejects.toMatchObject({ code: 'TAPE_BAD_BUNDLE' });
  writeFileSync(join(packs, 'tape.db'), '');
  await expect(b.pull()).rejects.toMatchObject({
    code: 'TAPE_BAD_REMOTE',
    message: expect.stringContaining('tape home'),
  });
  expect(statSync(pack).mode & 0o777).toBe(0o600);
});

test('a home that has what a changed pack changes finds it, and its next push brings what is right', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  a.store.sessions.open('main');
  a.store.entries.append('main', [user('One.')]);
  await a.push();
  const pack = join(dir.file('packs'), '00000001.bundle.zst');
  const records = recordsOf(zstdDecompressSync(readFileSync(pack)).toString());
  const changed = records.map((record) => JSON.stringify(record).replace('One.', 'Two.'));
  writeFileSync(pack, zstdCompressSync(sealed(changed)));
  rmSync(a.state, { recursive: true });
  const bad = { pack: '00000001.bundle.zst', error: { code: 'TAPE_BAD_BUNDLE' } };
  expect(await a.pull()).toMatchObject({ entries: 0, failed: [bad] });
  expect(await a.push()).toMatchObject({ pack: '00000002.bundle.zst', entries: 2 });
  using b = new SharingHome(dir, 'b');
  expect(await b.pull()).toMatchObject({ entries: 2, failed: [bad] });
  expect(b.faces()).toEqual(a.faces());
});

test('a push behind the last number is refused: no one would find its pack', async () => {
  using dir = tempDir();
  using a = new SharingHome(dir, 'a');
  using b = new SharingHome(dir, 'b');
  a.store.sessions.open('main');
  a.store.entries.append('main', [user('One.')]);
  await a.push();
  const packs = dir.file('packs');
  renameSync(join(packs, '00000001.bundle.zst'), join(packs, '99999999.bundle.zst'));
  await b.pull();
  b.store.entries.append('main', [user('Two.')]);
  await expect(b.push()).rejects.toMatchObject({
    code: 'TAPE_BAD_REMOTE',
    message: expect.stringContaining("no number is left behind '99999999.bundle.zst'"),
  });
  expect(readdirSync(packs)).toEqual(['99999999.bundle.zst']);
});

test('a URL names a directory by its absolute path, or is refused', () => {
  expect(
    ['packs', '../packs', '/mnt/packs/', 'file:///mnt/a%20b', './x:y'].map((url) =>
      remoteUrl(url, '/home/me'),
    ),
  ).toEqual(['/home/me/packs', '/home/packs', '/mnt/packs', '/mnt/a b', '/home/me/x:y']);
  for (const url of ['', 'a\0b', 'http://host/x', 'ext::sh -c x', 'file://host/x', 'me@host:path'])
    expect(() => remoteUrl(url, '/'), url).toThrow(expect.objectContaining({ code: 'TAPE_BAD_OPTION' }));
});
