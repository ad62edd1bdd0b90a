import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user } from '@tapedeck/tape';
import { type Pack, remoteUrl, shownUrl } from '@tapedeck/tape/remotes';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { bytesBelow, type GitPlace, gitPlace, type Planted, plant } from '../support/git-remote.ts';
import { startProcess } from '../support/process.ts';
import { packsAt, SharingHome } from '../support/remotes.ts';
import { gitIn, skipsGit, tempRepository } from '../support/repository.ts';
import { standStillAtTheEnd } from '../support/stand-still.ts';
import { tempDir } from '../support/temp-dir.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

const packsRef = 'refs/tapedeck/packs';

describe.skipIf(skipsGit('packs in git repositories'))('packs in a git repository', () => {
  test('are under one ref of a repository with code, whose files, index, branches and head stay as they are', async () => {
    using place = gitPlace();
    using code = tempRepository({ 'a.txt': 'a\n' });
    code.git('branch', 'other');
    code.write('a.txt', 'changed\n');
    code.write('new.txt', 'staged\n');
    code.git('add', 'new.txt');
    code.write('untracked.txt', 'mine\n');
    const before = { ...code.state(), head: code.git('symbolic-ref', 'HEAD'), refs: code.git('show-ref') };
    const packs = await place.open(`git:${code.path}`);
    expect(await packs.add(1, place.content('one'))).toBe(true);
    expect(await packs.add(2, place.content('two'))).toBe(true);
    const after = { ...code.state(), head: code.git('symbolic-ref', 'HEAD') };
    const refs = code
      .git('show-ref')
      .split('\n')
      .filter((line) => !line.endsWith(packsRef));
    expect({ ...after, refs: refs.join('\n') }).toEqual(before);
    expect(existsSync(join(code.path, '.git/FETCH_HEAD'))).toBe(false);
    expect(code.git('log', '--format=%s', packsRef)).toBe('Pack 2\nPack 1\n');
    // The repository itself collects garbage.
    code.git('gc', '--quiet', '--prune=now');
    expect(await place.contentOf(`git:${code.path}`, 1)).toBe('one');
    // A colleague fetches them with the code.
    const theirs = place.dir.file('theirs');
    gitIn(place.dir.path, 'clone', '--quiet', code.path, theirs);
    gitIn(theirs, 'fetch', '--quiet', 'origin', 'refs/tapedeck/*:refs/tapedeck/*');
    gitIn(theirs, 'gc', '--quiet', '--prune=now');
    expect(await place.contentOf(`git:${theirs}`, 2)).toBe('two');
    expect(gitIn(theirs, 'status', '--porcelain')).toBe('');
  });

  test('bring the sessions of one home to another, with the code, and refuse a push that contradicts another', async () => {
    using dir = tempDir();
    using code = tempRepository({ 'a.txt': 'a\n' });
    using a = new SharingHome(dir, 'a', { url: `git:${code.path}` });
    a.store.sessions.open('main');
    a.store.entries.append('main', [user('Plan the release.')]);
    expect(await a.push()).toMatchObject({ entries: 2, pack: '00000001.bundle.zst' });
    expect(await a.push()).toMatchObject({ entries: 0, pack: null });
    const theirs = dir.file('theirs');
    gitIn(dir.path, 'clone', '--quiet', code.path, theirs);
    gitIn(theirs, 'fetch', '--quiet', 'origin', 'refs/tapedeck/*:refs/tapedeck/*');
    using reader = new SharingHome(dir, 'r', { url: `git:${theirs}` });
    expect(await reader.pull()).toMatchObject({ packs: 1, entries: 2 });
    expect(reader.faces()).toEqual(a.faces());
    using b = new SharingHome(dir, 'b', { url: `git:file://${code.path}` });
    await b.pull();
    for (const { store } of [a, b]) store.entries.append('main', [user('Here')]);
    const both = await Promise.all([a.push(), b.push()]);
    expect(both.map(({ refused }) => refused.length).sort()).toEqual([0, 1]);
    expect(both.flatMap(({ refused }) => refused)).toMatchObject([
      { session: 'main', error: { code: 'TAPE_DIVERGED' } },
    ]);
    expect(await reader.pull()).toMatchObject({ packs: 0 });
    gitIn(theirs, 'fetch', '--quiet', 'origin', 'refs/tapedeck/*:refs/tapedeck/*');
    expect(await reader.pull()).toMatchObject({ packs: 1, entries: 1 });
    expect(reader.damage()).toEqual([]);
  });

  test('are added by one of several who add at once, and the others learn that the number is taken', async () => {
    using place = gitPlace();
    const url = `git:${place.bare('r.git')}`;
    const all = await Promise.all(
      ['a', 'b', 'c'].map(async (text) => ({ text, packs: await place.open(url) })),
    );
    const added = await Promise.all(all.map(({ text, packs }) => packs.add(1, place.content(text))));
    expect(added.filter(Boolean)).toHaveLength(1);
    expect(await place.contentOf(url, 1)).toBe(all[added.indexOf(true)]?.text);
    for (const { packs } of all) expect(await packs.list()).toMatchObject([{ number: 1, bytes: 1 }]);
  });

  test('are read where a home uses their remote for the first time, several times at once', async () => {
    using place = gitPlace();
    const url = `git:${place.bare('shared.git')}`;
    expect(await (await place.open(url)).add(1, place.content('one'))).toBe(true);
    const state = place.dir.file('state');
    const lists = await Promise.all(
      Array.from({ length: 4 }, async () => await (await packsAt(url, { state })).list()),
    );
    expect(lists.map((packs) => packs.length)).toEqual([1, 1, 1, 1]);
    expect(readdirSync(state)).toEqual(['git']);
  });

  test('are added where this process stood still as git ended', async () => {
    using place = gitPlace();
    const url = `git:${place.bare('r.git')}`;
    const [pid, go] = [place.dir.file('pid'), place.dir.file('go')];
    const git = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim();
    const waiting = `echo $$ >${pid}.its; mv ${pid}.its ${pid}; while [ ! -e ${go} ]; do sleep 0.01; done`;
    place.script(`case "$*" in *mktree*) ${waiting} ;; esac; exec ${git} "$@"`, place.dir.file('bin/git'));
    const env = { ...process.env, PATH: `${place.dir.file('bin')}:${process.env.PATH}` };
    const packs = await packsAt(url, { state: place.dir.file('mine'), env });
    const added = packs.add(1, place.content('one'));
    await vi.waitUntil(() => existsSync(pid), { timeout: 20_000 });
    await standStillAtTheEnd(Number(readFileSync(pid, 'utf8')), () => writeFileSync(go, ''));
    expect(await added).toBe(true);
    expect(await place.contentOf(url, 1)).toBe('one');
  });

  test('move once: a further fetch brings what is new', async () => {
    using place = gitPlace();
    const url = `git:file://${place.bare('r.git')}`;
    const writer = await place.open(url);
    for (const number of [1, 2, 3]) await writer.add(number, place.content(300_000));
    const state = place.dir.file('mine');
    await (await packsAt(url, { state })).list();
    const before = bytesBelow(state);
    await writer.add(4, place.content(5_000));
    const packs = await packsAt(url, { state });
    expect((await packs.list()).map(({ number, bytes }) => [number, bytes])).toEqual([
      ...[1, 2, 3].map((number) => [number, 300_000]),
      [4, 5_000],
    ]);
    expect(bytesBelow(state) - before).toBeLessThan(10_000);
  });

  test('are those of a repository with the other kind of object names, too', async () => {
    using place = gitPlace();
    const path = place.dir.file('code');
    gitIn(place.dir.path, 'init', '--quiet', '--object-format=sha256', 'code');
    gitIn(path, 'commit', '--quiet', '--allow-empty', '-m', 'first');
    expect(await (await place.open(`git:${path}`)).add(1, place.content('long names'))).toBe(true);
    expect(await place.contentOf(`git:${path}`, 1)).toBe('long names');
  });

  test('run no hook and no command of the repository, and heed no variable that names another one', async () => {
    using place = gitPlace();
    const path = place.bare('r.git');
    const ran = place.dir.file('ran');
    const hooks = [
      'pre-receive',
      'update',
      'post-receive',
      'post-update',
      'reference-transaction',
      'pre-push',
    ];
    for (const hook of hooks) place.script(`touch ${ran}`, join(path, 'hooks', hook));
    const command = place.script(`touch ${ran}`);
    for (const key of ['core.alternateRefsCommand', 'uploadpack.packObjectsHook', 'core.fsmonitor'])
      gitIn(path, 'config', key, command);
    writeFileSync(join(path, 'objects/info/alternates'), `${join(place.bare('other.git'), 'objects')}\n`);
    using code = tempRepository({ 'a.txt': 'a\n' });
    vi.stubEnv('GIT_DIR', join(code.path, '.git'));
    vi.stubEnv('GIT_INDEX_FILE', join(code.path, '.git/index'));
    vi.stubEnv('GIT_CONFIG_COUNT', '1');
    vi.stubEnv('GIT_CONFIG_KEY_0', 'core.hooksPath');
    vi.stubEnv('GIT_CONFIG_VALUE_0', join(path, 'hooks'));
    for (const [number, url] of [`git:${path}`, `git:file://${path}`].entries())
      expect(await (await place.open(url)).add(number + 1, place.content('x'))).toBe(true);
    expect(await place.contentOf(`git:${path}`, 2)).toBe('x');
    expect(existsSync(ran)).toBe(false);
    expect(code.git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/main\n');
  });

  test('are refused where the ref, or what lies in it, is something else', async () => {
    using place = gitPlace();
    const path = place.bare('r.git');
    const url = `git:${path}`;
    const commit = plant(path, [['00000001.bundle.zst', '100644', 'one']]);
    const list = async () => await (await place.open(url)).list();
    for (const [what, object] of [
      ['blob', gitIn(path, 'rev-parse', `${commit}:00000001.bundle.zst`)],
      ['tree', gitIn(path, 'rev-parse', `${commit}^{tree}`)],
    ] as const) {
      gitIn(path, 'update-ref', packsRef, object.trim());
      await expect(list()).rejects.toMatchObject({
        code: 'TAPE_BAD_REMOTE',
        message: `cannot read '${url}': ${packsRef} is a ${what}, and no commit`,
      });
    }
    const empty = gitIn(path, 'rev-parse', `${commit}^{tree}`).trim();
    for (const [mode, of, what] of [
      ['120000', '/etc/passwd', 'a symbolic link'],
      ['40000', empty, 'a directory'],
      ['160000', commit, 'a submodule'],
    ] as const) {
      plant(path, [['00000001.bundle.zst', mode, of]]);
      await expect(list()).rejects.toMatchObject({
        code: 'TAPE_BAD_REMOTE',
        data: { pack: '00000001.bundle.zst' },
        message: expect.stringContaining(`is ${what}, and no pack`),
      });
    }
    const odd: readonly Planted[] = [
      ['00000001.bundle.zst', '100644', 'one'],
      ['0000002.bundle.zst', '100644', 'short'],
      ['README', '100644', 'words'],
      ['\u001b[31m\n.bundle.zst', '100644', 'red'],
      ['sub', '40000', empty],
    ];
    plant(
      path,
      odd.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    );
    const packs = await place.open(url);
    expect((await packs.list()).map(({ number }) => number)).toEqual([1]);
    // Another push leaves in place what it does not know.
    expect(await packs.add(2, place.content('two'))).toBe(true);
    expect(gitIn(path, 'show', `${packsRef}:README`)).toBe('words');
    for (const name of ['..', '.git', 'a/b']) {
      plant(path, [[name, '100644', 'out']]);
      await expect(list(), name).rejects.toMatchObject({ code: 'TAPE_REMOTE_FAILED' });
    }
  });

  test('have a size that is known before they are read', async () => {
    using place = gitPlace();
    const path = place.bare('r.git');
    const bytesMax = 1_000_000;
    const packs = await place.open(`git:${path}`, { bytesMax });
    plant(path, [['00000001.bundle.zst', '100644', '0'.repeat(2 * bytesMax)]]);
    const [large] = await packs.list();
    await expect(packs.read(large as Pack, place.dir.file('out'))).rejects.toMatchObject({
      code: 'TAPE_BAD_REMOTE',
      message: expect.stringContaining('has over 1000000 bytes'),
    });
    expect(existsSync(place.dir.file('out'))).toBe(false);
    expect(await (await place.open(`git:${path}`)).add(2, place.content(3 * bytesMax))).toBe(true);
    await expect(packs.list()).rejects.toMatchObject({
      code: 'TAPE_BAD_REMOTE',
      message: expect.stringContaining('it brings over 1000000 bytes'),
    });
  });

  test('that are gone, or have changed, are not read', async () => {
    using place = gitPlace();
    const path = place.bare('r.git');
    plant(path, [['00000001.bundle.zst', '100644', 'one']]);
    const packs = await place.open(`git:${path}`);
    const [pack] = await packs.list();
    const read = async () => {
      await packs.list();
      await packs.read(pack as Pack, place.dir.file('out'));
    };
    for (const [content, why] of [
      ['another', 'has 7 bytes, and had 3'],
      [undefined, 'is gone'],
    ] as const) {
      plant(path, content === undefined ? [] : [['00000001.bundle.zst', '100644', content]]);
      await expect(read()).rejects.toMatchObject({
        code: 'TAPE_BAD_REMOTE',
        message: expect.stringContaining(why),
      });
    }
    gitIn(path, 'update-ref', '-d', packsRef);
    expect(await packs.list()).toEqual([]);
  });
});

/** A script in the place of ssh, in which `$command` is the one for the other side. */
function asSsh(place: GitPlace, text: string): void {
  vi.stubEnv('GIT_SSH_COMMAND', place.script(`for command; do :; done\n${text}`));
  vi.stubEnv('GIT_SSH_VARIANT', 'ssh');
}

const faithful = 'exec sh -c "$command"';

describe.skipIf(skipsGit('git remotes that fail'))('a git remote that fails', () => {
  test('in the midst of a transfer leaves nothing of it, and the next try moves all', async () => {
    using place = gitPlace();
    const path = place.bare('r.git');
    const url = `git+ssh://host${path}`;
    asSsh(place, faithful);
    await (await place.open(url)).add(1, place.content(200_000));
    const packs = await place.open(url);
    const cut = place.dir.file('cut');
    asSsh(
      place,
      `case $command in
         *upload-pack*) if [ -e ${cut} ]; then sh -c "$command" | dd bs=1 count=50000; else touch ${cut}; ${faithful}; fi ;;
       esac`,
    );
    await expect(packs.list()).rejects.toMatchObject({ code: 'TAPE_REMOTE_FAILED' });
    asSsh(place, faithful);
    expect(await packs.list()).toMatchObject([{ number: 1, bytes: 200_000 }]);
    asSsh(
      place,
      `case $command in *upload-pack*) ${faithful} ;; esac; dd bs=1 count=50000 | sh -c "$command"`,
    );
    await expect(packs.add(2, place.content(200_000))).rejects.toMatchObject({ code: 'TAPE_REMOTE_FAILED' });
    asSsh(place, faithful);
    expect(await packs.list()).toHaveLength(1);
    expect(await packs.add(2, place.content(200_000))).toBe(true);
    expect(await packs.list()).toHaveLength(2);
  });

  test('after a push arrived, and before it said so, has the pack; also where others pushed meanwhile', async () => {
    using place = gitPlace();
    const path = place.bare('r.git');
    const packs = await place.open(`git+ssh://host${path}`);
    const afterwards = (text: string) =>
      asSsh(
        place,
        `case $command in *upload-pack*) ${faithful} ;; esac; sh -c "$command"; cd ${path}; ${text}; exit 1`,
      );
    afterwards('true');
    expect(await packs.add(1, place.content('one'))).toBe(true);
    const next = `git -c user.name=t -c user.email=t@localhost commit-tree -p ${packsRef} -m next ${packsRef}^{tree}`;
    afterwards(`git update-ref ${packsRef} $(${next})`);
    expect(await packs.add(2, place.content('two'))).toBe(true);
    // Another one was first.
    const before = plant(path, [['00000003.bundle.zst', '100644', 'theirs']]);
    gitIn(path, 'update-ref', packsRef, `${before}~0`);
    asSsh(
      place,
      `case $command in *upload-pack*) ${faithful} ;; esac; cd ${path}; git update-ref ${packsRef} $(${next}); ${faithful}`,
    );
    expect(await packs.add(4, place.content('four'))).toBe(false);
  });

  test.each([
    ['says nothing', 'sleep 100', /no answer for 1.5 seconds/],
    ['says something else', 'echo Welcome!', /bad line length/],
    ['says something without end', 'yes Welcome!', /bad line length/],
    ['is not let in', 'echo "git@host: Permission denied (publickey)." >&2; exit 255', /Permission denied/],
    ['ends at once', 'kill -9 $$', /the remote end hung up|Could not read/i],
  ])('because it %s is reported in time', async (_, script, why) => {
    using place = gitPlace();
    asSsh(place, script);
    const begun = performance.now();
    const packs = await place.open('git:git@host:r.git', { idleMs: 1_500 });
    await expect(packs.list()).rejects.toMatchObject({
      code: 'TAPE_REMOTE_FAILED',
      message: expect.stringMatching(why),
      data: { url: 'git:git@host:r.git' },
    });
    expect(performance.now() - begun).toBeLessThan(10_000);
  });

  test('by a kill of this side at any time is used again by the same home', async () => {
    using place = gitPlace();
    const path = place.bare('r.git');
    const url = `git+ssh://host${path}`;
    asSsh(place, `case $command in *upload-pack*) ${faithful} ;; esac; echo pushing >&2; sleep 100`);
    const state = place.dir.file('mine');
    await using process = startProcess(
      `import { openRemote } from '@tapedeck/tape/remotes';
       const [url, state, file] = globalThis.process.argv.slice(1);
       console.log(await (await openRemote(url, { state })).add(1, file));`,
      ...[url, state, place.content('one')],
    );
    await vi.waitUntil(() => existsSync(join(state, 'git/objects')), { timeout: 20_000 });
    await process.kill();
    for (const lock of ['refs/tapedeck/packs.lock', 'config.lock', 'HEAD.lock', 'packed-refs.lock']) {
      mkdirSync(join(state, 'git/refs/tapedeck'), { recursive: true });
      writeFileSync(join(state, 'git', lock), '');
    }
    asSsh(place, faithful);
    const left = join(state, 'git/objects/pack/tmp_pack_1');
    writeFileSync(left, 'half');
    utimesSync(left, 1, 1);
    const packs = await packsAt(url, { state });
    expect(await packs.list()).toEqual([]);
    expect(existsSync(left)).toBe(false);
    expect(await packs.add(1, place.content('one'))).toBe(true);
    writeFileSync(join(state, 'git', packsRef), '');
    expect(await packs.add(2, place.content('two'))).toBe(true);
    expect(await place.contentOf(url, 1)).toBe('one');
  });
});

test.each([
  ['git:ext::sh -c touch% /tmp/x', 'it names a program'],
  ['git:fd::7', 'it names a program'],
  ['git:ssh://-oProxyCommand=touch%20x/y', 'begins with a minus sign'],
  ['git:ssh://%2doProxyCommand=x@host/y', 'begins with a minus sign'],
  ['git+ssh://user@-oProxyCommand=x/y', 'begins with a minus sign'],
  ['git:-oProxyCommand=x:y', 'begins with a minus sign'],
  ['git:user@-x:y', 'begins with a minus sign'],
  ['git:$(touch x):y', 'its host is no name of one'],
  ['git:host:a\nb', 'a line end'],
  ['git:https://host/\u0000', 'it is no place'],
  ['git://host/x', 'a git remote is a path, or a URL of file, http, https, ssh'],
  ['git+ext://host/x', 'a git remote is a path'],
  ['git:ssh://me:s3cret@host/x', 'takes no password'],
  ['git:https://me:s3cret@ho st/x', 'it is no valid URL'],
  ['git:', 'it has no path'],
])('a remote %j is refused before anything runs', (url, why) => {
  const read = () => remoteUrl(url, '/');
  expect(read).toThrowError(expect.objectContaining({ code: 'TAPE_BAD_OPTION' }));
  expect(read).toThrowError(why);
  expect(read).not.toThrowError(/s3cret/);
});

test('a URL is kept with what it needs, and shown without passwords and tokens', () => {
  for (const [given, kept, shown = kept] of [
    ['git:.', 'git:/home/me'],
    ['git:../code', 'git:/home/code'],
    ['git:me@host:code.git', 'git:me@host:code.git'],
    ['git+ssh://me@host:2222/code.git', 'git:ssh://me@host:2222/code.git'],
    ['git+https://s3cret@host/x.git', 'git:https://s3cret@host/x.git', 'git:https://***@host/x.git'],
    ['git:https://me:s3cret@host/x.git', 'git:https://me:s3cret@host/x.git', 'git:https://***@host/x.git'],
  ] as const) {
    expect(remoteUrl(given, '/home/me')).toBe(kept);
    expect(shownUrl(kept)).toBe(shown);
  }
  for (const url of [
    ...['https://me:s3cret@host/x', 'x://s3cret@host', 'git+https:/me:s3cret@host/x'],
    ...['git+https://host/x?token=s3cret', 'git:https://me@host/x#s3cret'],
  ])
    expect(() => remoteUrl(url, '/')).toThrowError(/as a remote: (?!.*s3cret)/);
});

test('a password in a URL is in no message', async () => {
  using place = gitPlace();
  for (const url of ['git:https://me:s3c%72et@127.0.0.1:1/x', 'git:http://s3c%72et@127.0.0.1:1/x']) {
    const packs = await place.open(url);
    expect(packs.url).toContain('//***@127.0.0.1:1/x');
    const error = await packs.list().catch((cause) => cause);
    expect(error).toMatchObject({ code: 'TAPE_REMOTE_FAILED' });
    expect(`${error.message} ${JSON.stringify(error.data)}`).not.toMatch(/s3c/);
  }
});
