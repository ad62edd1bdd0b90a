import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const message = (content: string) => ({ stdin: JSON.stringify({ role: 'user', content }) });

/** The heads of the sessions of a home, by their names. */
function headsOf(home: TempHome): Readonly<Record<string, string>> {
  using store = home.open();
  return Object.fromEntries(store.bundles.heads().map(({ session, hash }) => [session, hash]));
}

test('a home pushes to a directory, another one is cloned from it, and each pulls what the other pushes', async () => {
  using dir = tempDir();
  using a = tempHome();
  a.session('main', user('Why?'));
  a.session('key', user(`Use ghp_${'a1B2'.repeat(9)}.`));
  expect(jsonError(await a.here(['push', '--json']))).toMatchObject({
    code: 'CLI_USAGE',
    hint: expect.stringContaining('tape remote add'),
  });
  const added = await a.here(['remote', 'add', 'origin', 'packs', '--json'], { cwd: dir.path });
  expect(json(added)).toEqual({ name: 'origin', url: dir.file('packs'), repeated: false });
  expect(json(await a.here(['remote', 'add', 'origin', dir.file('packs'), '--json']))).toMatchObject({
    repeated: true,
  });
  const dry = await a.here(['push', '--dry-run']);
  expect(dry.stdout).toMatch(
    /^main: 2 entries, 1 line\nkey: 2 entries, 1 line\nWould send 4 entries and 2 lines of 2 sessions to origin, [\d.]+ KB\n$/,
  );
  expect(existsSync(dir.file('packs'))).toBe(false);
  const pushed = await a.here(['push', '--json']);
  expect(json(pushed)).toMatchObject({
    remote: 'origin',
    pack: '00000001.bundle.zst',
    entries: 4,
    withheld: 1,
    refused: [],
  });
  expect(pushed.stderr).toContain('1 entry with a secret: only the hashes were sent; to send all, add --raw');
  expect(await a.here(['push'])).toMatchObject({
    code: 0,
    stdout: 'origin lacks nothing of this home: nothing to send\n',
  });
  writeFileSync(dir.file('file'), '');
  for (const verb of [['clone', dir.file('packs')], ['init']])
    expect(jsonError(await a.here([...verb, dir.file('file'), '--json']))).toMatchObject({
      code: 'TAPE_CANNOT_OPEN',
      message: expect.stringContaining(`cannot make the home '${dir.file('file')}`),
    });
  const b = dir.file('b');
  // As a clone leaves it that is killed before it knows its remote.
  mkdirSync(b, { mode: 0o700 });
  openTapeStore(join(b, 'tape.db')).close();
  expect(json(await a.here(['clone', dir.file('packs'), b, '--json']))).toMatchObject({
    ...{ home: b, url: dir.file('packs'), entries: 4, failed: [] },
    sessions: [
      { session: 'main', became: 'new' },
      { session: 'key', became: 'new' },
    ],
  });
  const there = async (...args: readonly string[]) => await a.here([...args, '--home', b]);
  expect(json(await there('remote', '--json'))).toEqual([{ name: 'origin', url: dir.file('packs') }]);
  expect(await there('verify')).toMatchObject({ code: 0 });
  // What is kept of the remote belongs to the home.
  expect((await there('check')).stdout).toContain('home: ok\nintegrity: ok\n');
  await a.here(['append', 'main', '--home', b], message('From b.'));
  expect(await there('push', 'main')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Pushed 1 entry and 0 lines of 1 session to origin/),
  });
  expect((await a.here(['pull', '--dry-run'])).stdout).toBe(
    'main: 1 entry\nWould take in 1 entry of 1 session from origin\n',
  );
  expect((await a.here(['pull', '--quiet'])).stdout).toBe('main\n');
  expect((await a.here(['log', 'main'])).stdout).toContain('From b.');
  const refused = await a.here(['clone', dir.file('packs'), b, '--json']);
  expect([refused.code, jsonError(refused)]).toMatchObject([4, { code: 'TAPE_EXISTS', data: { home: b } }]);
});

test('a session that went on in two ways is refused with the way on, and the others travel', async () => {
  using dir = tempDir();
  using a = tempHome();
  using b = tempHome();
  a.session('main', user('Why?'));
  a.session('other', user('What?'));
  b.open().close();
  for (const home of [a, b]) await home.here(['remote', 'add', 'origin', dir.file('packs')]);
  await a.here(['push']);
  expect((await b.here(['pull'])).stdout).toContain('(undo with: tape archive main; tape archive other)');
  for (const home of [a, b]) await home.here(['append', 'main'], message(`From ${home.path}.`));
  await a.here(['push']);
  await b.here(['append', 'other'], message('More.'));
  const pushed = await b.here(['push', '--json']);
  expect([pushed.code, json(pushed)]).toMatchObject([
    4,
    { sessions: [{ session: 'other' }], refused: [{ session: 'main', code: 'TAPE_DIVERGED' }] },
  ]);
  expect(pushed.stderr).toContain('Hint: pull first: tape pull');
  const named = await b.here(['push', '--remote', 'origin']);
  expect(named.stderr).toContain('Hint: pull first: tape pull --remote origin');
  expect(await a.here(['pull'])).toMatchObject({ code: 0 });
  expect(headsOf(a).other).toBe(headsOf(b).other);
  const pulled = await b.here(['pull', '--json']);
  expect([pulled.code, json(pulled)]).toMatchObject([
    4,
    { refused: [{ session: 'main', code: 'TAPE_DIVERGED' }] },
  ]);
  expect(pulled.stderr).toContain('tape export main --home DIR | tape import - --as NEW');
  const bundle = (await a.here(['export', 'main'])).stdout;
  expect(await b.here(['import', '-', '--as', 'theirs'], { stdin: bundle })).toMatchObject({ code: 0 });
  await b.here(['archive', 'main']);
  for (const verb of ['pull', 'push', 'pull']) expect(await b.here([verb]), verb).toMatchObject({ code: 0 });
  expect(await a.here(['pull'])).toMatchObject({ code: 0 });
  expect(headsOf(a).theirs).toBe(headsOf(b).theirs);
});

test('a session whose name is taken is left out with a hint that frees the name', async () => {
  using dir = tempDir();
  using a = tempHome();
  using b = tempHome();
  for (const home of [a, b]) {
    home.session('main', user('Why?'));
    await home.here(['remote', 'add', 'origin', dir.file('packs')]);
  }
  await a.here(['push']);
  const pulled = await b.here(['pull']);
  expect(pulled).toMatchObject({ code: 4, stderr: expect.stringMatching(/another session has this name/) });
  expect(pulled.stderr).toContain('or free the name here, as tape delete and tape unalias do');
  await b.here(['delete', 'main']);
  expect(await b.here(['pull'])).toMatchObject({ code: 0 });
  expect(headsOf(b).main).toBe(headsOf(a).main);
});

test('remotes are names in config.yaml that are checked, chosen, completed, and removed with what was kept', async () => {
  using dir = tempDir();
  using home = tempHome();
  home.session('main');
  const said = async (...args: readonly string[]) => {
    const done = await home.here(args);
    return `${done.code} ${done.stderr.split('\n')[0]}`;
  };
  expect(await said('remote', 'add', 'x.y', '/x')).toMatch(/^2 .*its name must be/);
  expect(await said('remote', 'add', 'x', 'sftp://host/x')).toMatch(/^2 .*there are no remotes 'sftp:'/);
  expect(await said('remote', 'remove', 'x')).toMatch(/^3 .*there is no remote 'x'/);
  expect((await home.here(['pull', '--remote', 'x'])).stderr).toContain('Hint: All remotes: tape remote');
  await home.here(['remote', 'add', 'one', dir.file('one')]);
  expect(await said('push')).toMatch(/^0 /);
  await home.here(['remote', 'add', 'two', dir.file('two')]);
  expect(await said('push')).toMatch(/^2 .*several remotes/);
  expect(await said('push', '--remote', 'tow')).toMatch(/^3 /);
  expect(await said('push', '--remote', 'two')).toMatch(/^0 /);
  expect(await said('remote', 'add', 'one', dir.file('two'))).toMatch(/^4 .*it is /);
  expect((await home.here(['__complete', 'push', '--remote', ''])).stdout).toBe('one\ntwo\n');
  expect((await home.here(['__complete', 'remote', 'remove', 't'])).stdout).toBe('two\n');
  expect(readdirSync(home.file('remotes'))).toHaveLength(2);
  expect(await said('remote', 'remove', 'two')).toMatch(/^0 /);
  expect(readdirSync(home.file('remotes')).map((name) => name.split('.')[0])).toEqual(['one']);
  // A link in the place of that directory may lead to the files of others.
  renameSync(home.file('remotes'), dir.file('elsewhere'));
  symlinkSync(dir.file('elsewhere'), home.file('remotes'));
  await home.here(['remote', 'add', 'gone', dir.file('gone')]);
  mkdirSync(dir.file('elsewhere/gone.0123456789ab'));
  expect(await said('remote', 'remove', 'gone')).toMatch(/^0 /);
  expect(existsSync(dir.file('elsewhere/gone.0123456789ab'))).toBe(true);
  writeFileSync(home.file('config.yaml'), 'remotes:\n  one:\n    url: /x\n    command: sh\n');
  expect(await said('config')).toMatch(/^2 .*remotes.one: it must have the field url/);
});

test('a remote that is not there, or has what is no pack, is named, and nothing is made', async () => {
  using dir = tempDir();
  using home = tempHome();
  home.session('main');
  await home.here(['remote', 'add', 'origin', dir.file('packs')]);
  const none = await home.here(['pull', '--json']);
  expect([none.code, jsonError(none)]).toMatchObject([
    1,
    { code: 'TAPE_REMOTE_FAILED', data: { url: dir.file('packs') } },
  ]);
  const clone = await home.here(['clone', dir.file('packs'), dir.file('new')]);
  expect(clone).toMatchObject({ code: 1 });
  expect(existsSync(dir.file('new'))).toBe(false);
  await home.here(['push']);
  mkdirSync(join(dir.file('packs'), '00000002.bundle.zst'));
  const bad = await home.here(['push', '--json']);
  expect([bad.code, jsonError(bad)]).toMatchObject([
    1,
    { code: 'TAPE_BAD_REMOTE', message: expect.stringContaining('is a directory') },
  ]);
});
