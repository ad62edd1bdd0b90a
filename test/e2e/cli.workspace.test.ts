import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { processOwner } from '@tapedeck/tape';
import { afterEach, describe, expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { gitIn, skipsGit, type TempRepository, tempRepository } from '../support/repository.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const files = { 'a.txt': 'one\ntwo\nthree\nfour\nfive\n', 'b.txt': 'b\n', '.gitignore': 'secret\nout\n' };

interface Merged {
  readonly state: string;
  readonly seq: number | null;
  readonly repeated: boolean;
  readonly artifact?: { readonly files: readonly { readonly path: string }[] };
  readonly applied?: { readonly state: string; readonly dir: string; readonly files: readonly string[] };
  readonly kept?: { readonly path: string; readonly why: string };
}

/** Forks `main` of a home with a worktree of the repository, and returns its directory. */
async function forked(home: TempHome, code: TempRepository, name: string): Promise<string> {
  await home.here(['new', 'main']);
  const done = await home.here(['fork', 'main', '--as', name, '--workspace', 'worktree', '--json'], {
    cwd: code.path,
  });
  return json<{ workspace: string }>(done).workspace;
}

const heads = (home: TempHome) => {
  using store = home.open();
  return store.sessions.list({ all: true }).map(({ session: name, head }) => `${name}@${head}`);
};

const { PATH = '' } = process.env;
afterEach(() => {
  process.env.PATH = PATH;
});

/** Git takes tens of processes for each of these: what the others do not show has its place in the full size. */
const isFull = sized(false, true, true);

describe.skipIf(skipsGit('tape merge --apply'))('tape merge --apply', () => {
  test('changes the files as the child did, once, and leaves the index alone', async () => {
    using home = tempHome();
    using code = tempRepository(files);
    code.write('a.txt', 'ONE\ntwo\nthree\nfour\nfive\n');
    code.git('add', 'a.txt');
    code.write('a.txt', 'ONE!\ntwo\nthree\nfour\nfive\n');
    code.write('draft.txt', 'not known to git\n');
    const dir = await forked(home, code, 'fix');
    writeFileSync(join(dir, 'a.txt'), 'ONE!\ntwo\nthree\nfour\nFIVE\n');
    writeFileSync(join(dir, 'draft.txt'), 'changed all the same\n');
    writeFileSync(join(dir, 'new.sh'), '#!/bin/sh\n');
    chmodSync(join(dir, 'new.sh'), 0o755);
    gitIn(dir, 'rm', '--quiet', 'b.txt');
    // A change made meanwhile stays.
    code.write('a.txt', 'ONE!!\ntwo\nthree\nfour\nfive\n');
    const { index } = code.state();
    const done = await home.here(['merge', 'fix', '--apply']);
    expect([done.code, done.stderr]).toEqual([0, '']);
    expect(done.stdout).toBe(
      `Merged fix:2-4 into main@2 (undo with: tape undo main@2)\nApplied to ${code.path}: a.txt, b.txt, draft.txt, new.sh\n`,
    );
    expect(code.read('a.txt')).toBe('ONE!!\ntwo\nthree\nfour\nFIVE\n');
    expect(code.state()).toEqual({
      index,
      status: 'MM a.txt\n D b.txt\n?? draft.txt\n?? new.sh\n',
    });
    expect(gitIn(code.path, 'stash', 'list')).toBe('');
    expect(readdirSync(home.file('worktrees'))).toEqual([]);
    const again = await home.here(['merge', 'fix', '--apply', '--json']);
    expect(json<Merged>(again)).toMatchObject({
      repeated: true,
      applied: { state: 'already', dir: code.path, files: [] },
    });
    expect(code.state().index).toBe(index);
    expect((await home.here(['doctor'])).stdout).toBe('ok: 2 sessions, 6 entries\n');
  });

  test('merges nothing when the patch does not fit; merged without --apply, it can be applied later', async () => {
    using home = tempHome();
    using code = tempRepository(files);
    const dir = await forked(home, code, 'fix');
    writeFileSync(join(dir, 'a.txt'), 'one\n2\nthree\nfour\nfive\n');
    writeFileSync(join(dir, 'b.txt'), 'bb\n');
    code.write('a.txt', 'one\nzwei\nthree\nfour\nfive\n');
    const before = code.state();
    const refused = await home.here(['merge', 'fix', '--apply', '--json']);
    expect(refused.code).toBe(4);
    expect(jsonError(refused)).toMatchObject({
      code: 'SESSION_CANNOT_APPLY',
      message: expect.stringContaining('the present content of a.txt'),
      data: { session: 'fix', dir: code.path, files: ['a.txt'] },
    });
    expect([code.state(), code.read('b.txt')]).toEqual([before, 'b\n']);
    expect(heads(home)).toContain('main@1');
    expect(existsSync(dir)).toBe(true);
    const merged = json<Merged>(await home.here(['merge', 'fix', '--json']));
    expect(merged).toMatchObject({
      state: 'merged',
      artifact: { files: [{ path: 'a.txt' }, { path: 'b.txt' }] },
    });
    expect(merged.applied).toBeUndefined();
    code.git('checkout', '--quiet', 'a.txt');
    const applied = json<Merged>(await home.here(['merge', 'fix', '--apply', '--json']));
    expect(applied).toMatchObject({
      repeated: true,
      applied: { state: 'applied', files: ['a.txt', 'b.txt'] },
    });
    expect([code.read('a.txt'), code.read('b.txt')]).toEqual(['one\n2\nthree\nfour\nfive\n', 'bb\n']);
  });

  const inTheWay: Readonly<Record<string, readonly [path: string, put: (code: TempRepository) => void]>> = {
    'a file that git ignores': ['secret', (code) => code.write('secret', 'do not lose\n')],
    'a file that git does not know': ['dir/new', (code) => code.write('dir/new', 'do not lose\n')],
    'a link to another place': ['dir/new', (code) => symlinkSync(dirname(code.path), join(code.path, 'dir'))],
    'an ignored link to another place': [
      'out/new',
      (code) => symlinkSync(dirname(code.path), join(code.path, 'out')),
    ],
    'a file that was deleted': ['b.txt', (code) => code.git('rm', '--quiet', 'b.txt')],
  };
  test.each(Object.entries(inTheWay).filter((_, i) => isFull || i % 2 === 0))(
    '%s in the way stays unchanged',
    async (_, [path, put]) => {
      using home = tempHome();
      using code = tempRepository(files);
      const dir = await forked(home, code, 'fix');
      for (const name of ['dir/new', 'out/new', 'secret', 'b.txt', 'a.txt']) {
        mkdirSync(dirname(join(dir, name)), { recursive: true });
        writeFileSync(join(dir, name), 'of the child\n');
        gitIn(dir, 'add', '--force', name);
      }
      put(code);
      const look = () => [
        code.git('status', '--porcelain', '--ignored'),
        readdirSync(dirname(code.path)),
        code.state(),
      ];
      const before = look();
      const refused = await home.here(['merge', 'fix', '--apply', '--json']);
      expect([refused.code, jsonError(refused).code]).toEqual([4, 'SESSION_CANNOT_APPLY']);
      expect(jsonError(refused).data.files).toEqual([path]);
      expect(look()).toEqual(before);
      expect(heads(home)).toContain('main@1');
    },
  );

  if (isFull)
    test('applies in another clone, which lacks the objects of the patch', async () => {
      using home = tempHome();
      using code = tempRepository(files);
      const clone = `${code.path}-2`;
      gitIn(dirname(code.path), 'clone', '--quiet', '--no-hardlinks', code.path, clone);
      code.write('draft.txt', 'draft\n');
      const dir = await forked(home, code, 'fix');
      writeFileSync(join(dir, 'a.txt'), 'one\n2\nthree\nfour\nfive\n');
      writeFileSync(
        join(dir, 'bytes'),
        Uint8Array.from({ length: 5000 }, (_, i) => (i * i) % 251),
      );
      const done = await home.here(['merge', 'fix', '--apply', '--into-dir', `${clone}/.`, '--json']);
      expect(json<Merged>(done).applied).toEqual({ state: 'applied', dir: clone, files: ['a.txt', 'bytes'] });
      expect(gitIn(clone, 'status', '--porcelain')).toBe(' M a.txt\n?? bytes\n');
      expect(code.state().status).toBe('?? draft.txt\n');
      const elsewhere = await home.here(['merge', 'fix', '--apply', '--into-dir', home.path, '--json']);
      expect([elsewhere.code, jsonError(elsewhere).code]).toEqual([2, 'SESSION_NO_REPOSITORY']);
    });

  test('restores everything when writing fails half-way, and can be repeated', async () => {
    using home = tempHome();
    using code = tempRepository(files);
    const dir = await forked(home, code, 'fix');
    writeFileSync(join(dir, 'a.txt'), 'changed\n');
    writeFileSync(join(dir, 'new.txt'), 'new\n');
    symlinkSync('a.txt', join(dir, 'link'));
    chmodSync(join(dir, 'b.txt'), 0o755);
    const before = code.state();
    // A git that has written the files when its disk fails.
    mkdirSync(home.file('bin'));
    writeFileSync(
      home.file('bin/git'),
      `#!/bin/sh\nPATH='${PATH}'\ncase "$*" in *'apply -- '*) git "$@"; echo 'error: disk full' >&2; exit 1;; esac\nexec git "$@"\n`,
      { mode: 0o755 },
    );
    process.env.PATH = `${home.file('bin')}:${PATH}`;
    const failed = await home.here(['merge', 'fix', '--apply', '--json']);
    process.env.PATH = PATH;
    expect([failed.code, jsonError(failed).message]).toEqual([1, "cannot apply 'fix': git says 'disk full'"]);
    expect(code.state().status).toBe(before.status);
    expect(code.read('a.txt')).toBe(files['a.txt']);
    const again = json<Merged>(await home.here(['merge', 'fix', '--apply', '--json']));
    expect(again).toMatchObject({ repeated: true, applied: { state: 'applied' } });
    expect(code.state().status).toBe(' M a.txt\n M b.txt\n?? link\n?? new.txt\n');
  });

  if (isFull)
    test('refuses a child without a worktree, and a discarded child', async () => {
      using home = tempHome();
      using code = tempRepository(files);
      await forked(home, code, 'fix');
      await home.here(['fork', 'main', '--as', 'plain']);
      await home.here(['append', 'plain'], { stdin: '{"role":"user","content":"Found."}' });
      const plain = await home.here(['merge', 'plain', '--apply', '--json']);
      expect([plain.code, jsonError(plain).code]).toEqual([3, 'SESSION_NO_WORKSPACE']);
      expect((await home.here(['merge', 'fix', '--apply', '--strategy', 'discard'])).code).toBe(2);
      expect((await home.here(['merge', 'fix', '--apply', '--check'])).code).toBe(2);
      expect((await home.here(['merge', 'fix', '--into-dir', code.path])).code).toBe(2);
      expect(heads(home)).toContain('main@1');
      const unchanged = json<Merged>(await home.here(['merge', 'fix', '--apply', '--json']));
      expect(unchanged.applied).toEqual({ state: 'empty', dir: code.path, files: [] });
    });
});

describe.skipIf(skipsGit('worktrees of the command line'))('a worktree', () => {
  test('merge --check reports the files of a worktree, and writes nothing', async () => {
    using home = tempHome();
    using code = tempRepository(files);
    const [one, two] = [await forked(home, code, 'one'), await forked(home, code, 'two')];
    for (const dir of [one, two]) writeFileSync(join(dir, 'a.txt'), `${dir}\n`);
    await home.here(['merge', 'one']);
    const before = [home.contents(), code.git('count-objects')];
    const checked = await home.here(['merge', 'two', '--check', '--on-conflict', 'refuse', '--json']);
    expect([checked.code, json(checked)]).toEqual([
      4,
      {
        child: 'two',
        complete: true,
        conflicts: [{ what: 'file:a.txt', child: 3, parent: 2, via: 'one' }],
      },
    ]);
    expect([home.contents(), code.git('count-objects')]).toEqual(before);
  });

  test('left by a merge into a busy parent is removed by the next merge', async () => {
    using home = tempHome();
    using code = tempRepository(files);
    const dir = await forked(home, code, 'fix');
    writeFileSync(join(dir, 'a.txt'), 'x\n');
    {
      using store = home.open();
      const lease = store.leases.acquire('main', processOwner('busy'));
      const queued = await home.here(['merge', 'fix', '--apply', '--no-wait', '--json']);
      expect([queued.code, json<Merged>(queued).state]).toEqual([6, 'queued']);
      expect(queued.stderr).toContain('The patch is not applied yet');
      store.inbox.drain(lease);
      store.leases.release(lease);
    }
    expect(code.read('a.txt')).toBe(files['a.txt']);
    expect(existsSync(dir)).toBe(true);
    const merged = json<Merged>(await home.here(['merge', 'fix', '--apply', '--json']));
    expect(merged).toMatchObject({ seq: 2, repeated: true, applied: { state: 'applied' } });
    expect([code.read('a.txt'), existsSync(dir)]).toEqual(['x\n', false]);
  });

  if (isFull)
    test('that cannot be removed stays, and merge reports it', async () => {
      using home = tempHome();
      using code = tempRepository(files);
      const dir = await forked(home, code, 'fix');
      code.git('worktree', 'lock', dir);
      const merged = await home.here(['merge', 'fix', '--json']);
      expect([merged.code, json<Merged>(merged).kept]).toEqual([0, { path: dir, why: 'it is locked' }]);
      expect(merged.stderr).toBe(`Kept the worktree ${dir}: it is locked\n`);
      writeFileSync(home.file('worktrees/notes'), 'of no session\n');
      const { ok, findings } = json<{ ok: boolean; findings: readonly { code: string; message: string }[] }>(
        await home.here(['doctor', '--json']),
      );
      expect([ok, findings.map(({ code, message }) => [code, message])]).toEqual([
        true,
        [['unknown-file', `'${home.file('worktrees/notes')}' is not a file of a tape home`]],
      ]);
    });

  test('each delegated child has its own, and its merge brings a patch', async () => {
    using home = tempHome();
    using code = tempRepository(files);
    await home.here(['new', 'main']);
    writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'Done.' }]));
    const model = `script:${home.file('answers.json')}`;
    const args = ['delegate', 'main', '--task', 'one', '--task', 'two', '--model', model];
    const workspace = ['--workspace', 'worktree', '--repository', code.path];
    expect((await home.here([...args, '--repository', code.path])).code).toBe(2);
    expect((await home.here([...args, '--workspace', 'worktree'], { cwd: home.path })).code).not.toBe(0);
    const done = await home.here([...args, ...workspace]);
    expect(done.code).toBe(0);
    using store = home.open();
    const marks = [...store.entries.read('main', { kind: 'anchor' })].filter(({ name }) =>
      name?.startsWith('merge/'),
    );
    expect(marks.map(({ payload }) => payload)).toMatchObject([
      { state: { complete: true, artifact: { bytes: 0 } } },
      { state: { complete: true, artifact: { bytes: 0 } } },
    ]);
    expect(readdirSync(home.file('worktrees'))).toEqual([]);
  });
});
