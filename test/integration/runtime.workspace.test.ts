import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Child, Deck, Session } from '@tapedeck/runtime';
import { closeWorktree, diffOf, planApplication, workspaceOf } from '@tapedeck/runtime/internal';
import { assistant, type Merged, user } from '@tapedeck/tape';
import { tool } from 'ai';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { gitIn, skipsGit, type TempRepository, tempRepository } from '../support/repository.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const files = {
  'a.txt': 'one\ntwo\nthree\n',
  'b.txt': 'b\n',
  'src/c.ts': 'export {};\n',
  '.gitignore': 'out/\n',
};

/** A repository, a home beside it and a deck on that home whose model says what is not to be looked at. */
interface Desk extends AsyncDisposable {
  readonly code: TempRepository;
  readonly home: TempHome;
  readonly deck: Deck;
  readonly main: Session;
  /** Forks with a worktree of the repository. */
  fork(name: string): Promise<Child & { readonly workspace: string }>;
}

async function desk(code: TempRepository = tempRepository(files)): Promise<Desk> {
  const home = tempHome();
  const deck = await openDeck({ home: home.path });
  const main = await deck.session('main');
  return {
    code,
    home,
    deck,
    main,
    fork: async (name) => {
      const child = await main.fork({ name, workspace: 'worktree', repository: code.path });
      expect(child.workspace).toBeDefined();
      return child as Child & { readonly workspace: string };
    },
    [Symbol.asyncDispose]: async () => {
      await deck[Symbol.asyncDispose]();
      home[Symbol.dispose]();
      code[Symbol.dispose]();
    },
  };
}

/** The worktrees left in a home and in the repository. */
function leftIn({ home, code }: Desk): { readonly home: readonly string[]; readonly git: readonly string[] } {
  const namesIn = (dir: string) => (existsSync(dir) ? readdirSync(dir) : []);
  return { home: namesIn(home.file('worktrees')), git: namesIn(join(code.path, '.git/worktrees')) };
}

const nothing = { home: [], git: [] };
const changedIn = ({ artifact }: Merged) =>
  artifact?.files.map(({ path, change, from }) =>
    from === undefined ? `${change} ${path}` : `${change} ${from} ${path}`,
  );
const refused = async (act: Promise<unknown>) =>
  await act.then(
    () => ({ code: 'none', message: '' }),
    (error: { code: string; message: string; data: object }) => error,
  );

/** Git takes tens of processes for each of these: what the others do not show has its place in the full size. */
const isFull = sized(false, true, true);

describe.skipIf(skipsGit('worktrees of children'))('a worktree for a child', () => {
  test('begins with all files of the repository, and leaves the repository unchanged', async () => {
    await using at = await desk();
    at.code.write('a.txt', 'one\nTWO\nthree\n');
    at.code.write('new file', 'not known to git\n');
    at.code.write('out/built', 'ignored\n');
    rmSync(join(at.code.path, 'b.txt'));
    at.code.git('rm', '--quiet', '--cached', 'src/c.ts');
    const before = at.code.state();
    const head = at.code.git('rev-parse', 'HEAD');
    const child = await at.fork('fix');
    expect(at.code.state()).toEqual(before);
    expect([at.code.git('rev-parse', 'HEAD'), at.code.git('branch', '--list').trim()]).toEqual([
      head,
      '* main',
    ]);
    const has = (path: string) => existsSync(join(child.workspace, path));
    expect(['new file', 'src/c.ts', 'b.txt', 'out'].map(has)).toEqual([true, true, false, false]);
    expect(readFileSync(join(child.workspace, 'a.txt'), 'utf8')).toBe('one\nTWO\nthree\n');
    expect(gitIn(child.workspace, 'status', '--porcelain')).toBe('');
    expect([
      lstatSync(at.home.file('worktrees')).mode & 0o777,
      lstatSync(child.workspace).mode & 0o777,
    ]).toEqual([0o700, 0o700]);
    expect(await workspaceOf({ store: at.deck.store, home: at.home.path }, 'fix')).toBe(child.workspace);
    expect((await diffOf({ store: at.deck.store, home: at.home.path }, 'fix'))?.bytes.length).toBe(0);
  });

  test('is removed by the merge, which carries its changes as a patch', async () => {
    await using at = await desk();
    const child = await at.fork('fix');
    const write = (path: string, text: string | Uint8Array) =>
      writeFileSync(join(child.workspace, path), text);
    const bytes = Uint8Array.from({ length: 3000 }, (_, i) => (i * i * 7) % 251);
    const names = ['-rf', 'with space', 'line\nend', 'quo"te', 'näme', '.hidden', 'star*', ':(top)x'];
    for (const name of names) write(name, `${name}\n`);
    write('bytes', bytes);
    write('empty', '');
    write('a.txt', 'one\ntwo\nTHREE\n');
    chmodSync(join(child.workspace, 'src/c.ts'), 0o755);
    renameSync(join(child.workspace, 'b.txt'), join(child.workspace, 'src/b.txt'));
    symlinkSync('/nowhere/else', join(child.workspace, 'link'));
    mkdirSync(join(child.workspace, 'out'));
    write('out/built', 'ignored');
    gitIn(child.workspace, 'add', 'a.txt');
    gitIn(child.workspace, 'commit', '--quiet', '-m', 'a commit of its own');
    const before = at.code.state();
    const merged = await child.finish();
    expect(at.code.state()).toEqual(before);
    expect(merged).toMatchObject({ complete: true, conflicts: [] });
    expect(changedIn(merged)?.sort()).toEqual(
      [
        ...names.map((name) => `added ${name}`),
        'added bytes',
        'added empty',
        'added link',
        'changed a.txt',
        'changed src/c.ts',
        'renamed b.txt src/b.txt',
      ].sort(),
    );
    expect(merged.artifact?.files.find(({ path }) => path === 'link')).toMatchObject({ mode: '120000' });
    expect(leftIn(at)).toEqual(nothing);
    expect(await child.finish()).toEqual({ ...merged, repeated: true });
    const other = gitIn(at.code.path, 'clone', '--quiet', at.code.path, `${at.code.path}-2`);
    expect(other).toBe('');
    writeFileSync(at.home.file('p'), await at.deck.store.entries.blob(merged.artifact?.blob ?? ''));
    gitIn(`${at.code.path}-2`, 'apply', '--index', at.home.file('p'));
    expect(gitIn(`${at.code.path}-2`, 'write-tree').trim()).toBe(merged.artifact?.tree);
    expect([...(await Array.fromAsync(at.deck.store.verify()))]).toEqual([]);
  });

  test('is named to the tools of the child, and a file that two children changed is a conflict', async () => {
    using code = tempRepository(files);
    using home = tempHome();
    const edit = tool({
      inputSchema: z.object({ path: z.string(), text: z.string() }),
      execute: async ({ path, text }, { context }) => {
        const { workspace } = context as { workspace?: string };
        if (workspace === undefined) return 'nowhere';
        writeFileSync(join(workspace, path), text);
        return 'done';
      },
    });
    const answers = ['one', 'two'].flatMap((name) => [
      {
        when: { session: name },
        toolCalls: [
          { name: 'edit', input: { path: 'a.txt', text: `${name}\n` } },
          { name: 'edit', input: { path: `${name}.txt`, text: 'own\n' } },
        ],
      },
      { when: { session: name }, text: 'Done.' },
    ]);
    answers.push({
      when: { session: 'main' },
      toolCalls: [{ name: 'edit', input: { path: 'x', text: '' } }],
    });
    answers.push({ when: { session: 'main' }, text: 'Done.' });
    writeFileSync(home.file('answers.json'), JSON.stringify(answers));
    await using deck = await openDeck({
      home: home.path,
      model: `script:${home.file('answers.json')}`,
      tools: { edit },
    });
    const main = await deck.session('main');
    const before = code.state();
    const outcomes = await main.delegate(
      ['one', 'two'].map((name) => ({ task: 'Edit.', name })),
      { workspace: 'worktree', repository: code.path, order: 'spawn' },
    );
    expect(outcomes.map(({ status, error }) => [status, error])).toEqual(
      Array(2).fill(['completed', undefined]),
    );
    expect(code.state()).toEqual(before);
    const [one, two] = outcomes.map(({ merged }) => merged);
    expect([one?.complete, two?.complete, one?.conflicts]).toEqual([true, true, []]);
    expect(two?.conflicts).toEqual([
      { what: 'file:a.txt', child: expect.any(Number), parent: one?.seq, via: 'one' },
    ]);
    await main.run('Edit.');
    const results = await Array.fromAsync(deck.store.entries.read('main', { kind: 'tool-result' }));
    expect(results.map(({ payload }) => payload)).toMatchObject([{ output: { value: 'nowhere' } }]);
  });

  if (isFull)
    test('conflicts with a parent that has written the same file since, and refuses the merge where conflicts are refused', async () => {
      await using at = await desk();
      const child = await at.fork('fix');
      writeFileSync(join(child.workspace, 'a.txt'), 'of the child\n');
      const edited = { read: [], write: ['a.txt'] };
      await at.deck.store.entries.append('main', [
        assistant([{ type: 'tool-call', toolCallId: 'c1', toolName: 'edit', input: {} }]),
      ]);
      await at.deck.store.entries.append('main', [
        {
          kind: 'tool-result',
          payload: {
            type: 'tool-result',
            toolCallId: 'c1',
            toolName: 'edit',
            output: { type: 'text', value: '' },
          },
          meta: { paths: edited },
        },
      ]);
      expect(await refused(child.finish({ onConflict: 'refuse' }))).toMatchObject({ code: 'TAPE_CONFLICT' });
      expect(existsSync(child.workspace)).toBe(true);
      // The entries recorded for the refused merge are not the last.
      gitIn(child.workspace, 'checkout', '--quiet', 'a.txt');
      writeFileSync(join(child.workspace, 'b.txt'), 'instead\n');
      const merged = await child.finish({ onConflict: 'refuse' });
      expect([changedIn(merged), merged.conflicts]).toEqual([['changed b.txt'], []]);
      expect(leftIn(at)).toEqual(nothing);
    });

  if (isFull)
    test('of a grandchild begins with the changes of the child, and merges into them', async () => {
      await using at = await desk();
      const child = await at.fork('fix');
      writeFileSync(join(child.workspace, 'a.txt'), 'of the child\n');
      const deeper = await child.fork({ name: 'deeper', workspace: 'worktree' });
      const workspace = deeper.workspace ?? '';
      expect(readFileSync(join(workspace, 'a.txt'), 'utf8')).toBe('of the child\n');
      writeFileSync(join(workspace, 'new.txt'), 'new\n');
      expect(changedIn(await deeper.finish())).toEqual(['added new.txt']);
      const place = { store: at.deck.store, home: at.home.path };
      const application = await planApplication(place, 'deeper');
      expect(application).toMatchObject({ state: 'ready', dir: child.workspace, files: ['new.txt'] });
      await application.write();
      expect(changedIn(await child.finish())).toEqual(['changed a.txt', 'added new.txt']);
      expect(leftIn(at)).toEqual(nothing);
    });

  if (isFull)
    test('of a merged child that continues keeps its changes, and merges only what is new', async () => {
      await using at = await desk();
      const child = await at.fork('fix');
      writeFileSync(join(child.workspace, 'a.txt'), 'first\n');
      await child.finish();
      await at.deck.store.entries.append('fix', [user('And b?')]);
      writeFileSync(at.home.file('answers.json'), JSON.stringify([{ text: 'Yes.' }]));
      await child.run(undefined, { model: `script:${at.home.file('answers.json')}` });
      expect(readFileSync(join(child.workspace, 'a.txt'), 'utf8')).toBe('first\n');
      writeFileSync(join(child.workspace, 'b.txt'), 'second\n');
      expect(changedIn(await child.finish())).toEqual(['changed b.txt']);
      expect(leftIn(at)).toEqual(nothing);
      // Both patches are applied, one after the other, and each of them once.
      const place = { store: at.deck.store, home: at.home.path };
      const application = await planApplication(place, 'fix');
      expect(application.files).toEqual(['a.txt', 'b.txt']);
      await application.write();
      expect([at.code.read('a.txt'), at.code.read('b.txt')]).toEqual(['first\n', 'second\n']);
      expect(await planApplication(place, 'fix')).toMatchObject({ state: 'already', files: [] });
      at.code.git('checkout', '--quiet', 'b.txt');
      expect((await planApplication(place, 'fix')).files).toEqual(['b.txt']);
    });

  if (isFull)
    test('is the same for the same key', async () => {
      await using at = await desk();
      const asked = { key: 'k', workspace: 'worktree', repository: at.code.path } as const;
      const first = await at.main.fork(asked);
      writeFileSync(join(first.workspace ?? '', 'a.txt'), 'kept\n');
      const again = await at.main.fork(asked);
      expect([again.id, again.workspace]).toEqual([first.id, first.workspace]);
      expect(readFileSync(join(again.workspace ?? '', 'a.txt'), 'utf8')).toBe('kept\n');
      expect(await refused(at.main.fork({ key: 'k' }))).toMatchObject({ code: 'TAPE_KEY_CONFLICT' });
      const head = (await again.info()).head;
      expect((await at.main.fork(asked)).workspace).toBe(first.workspace);
      expect((await again.info()).head).toBe(head);
    });

  if (isFull)
    test('excludes a home inside the repository', async () => {
      using code = tempRepository(files);
      const home = join(code.path, 'state');
      mkdirSync(home, { mode: 0o700 });
      await using deck = await openDeck({ home });
      const child = await (await deck.session('main')).fork({ workspace: 'worktree', repository: home });
      expect(readdirSync(child.workspace ?? '').sort()).toEqual([
        '.git',
        '.gitignore',
        'a.txt',
        'b.txt',
        'src',
      ]);
      writeFileSync(join(child.workspace ?? '', 'a.txt'), 'x\n');
      expect(changedIn(await child.finish())).toEqual(['changed a.txt']);
      const inItself = await deck.session('other');
      rmSync(join(code.path, '.git'), { recursive: true });
      gitIn(home, 'init', '--quiet');
      gitIn(home, 'commit', '--quiet', '--allow-empty', '-m', 'first');
      const odd = refused(inItself.fork({ name: 'odd', workspace: 'worktree', repository: home }));
      expect(await odd).toMatchObject({
        code: 'SESSION_NO_REPOSITORY',
        message: expect.stringContaining('home itself'),
      });
    });

  const oddPaths = ['with  space:"quoted";\n$(touch pwned)', '-rf'];
  test.each(sized(oddPaths.slice(0, 1), oddPaths, oddPaths))(
    'treats the path of the repository, %j, and the name of the child as plain names',
    async (name) => {
      await using at = await desk(tempRepository(files, name));
      at.code.write('new.txt', 'new\n');
      for (const session of ['a:b@c+d!%', '%2e%2e%2f', 'x'.repeat(180)].slice(0, sized(1, 3, 3))) {
        const child = await at.fork(session);
        expect(child.workspace).toBe(join(at.home.path, 'worktrees', child.id));
        writeFileSync(join(child.workspace, 'new.txt'), 'newer\n');
        expect(changedIn(await child.finish())).toEqual(['changed new.txt']);
        const application = await planApplication({ store: at.deck.store, home: at.home.path }, session);
        expect([application.dir, application.files]).toEqual([at.code.path, ['new.txt']]);
      }
      expect(leftIn(at)).toEqual(nothing);
      expect(at.code.state().status).toBe('?? new.txt\n');
    },
  );

  test('runs and trusts nothing of a repository, of its worktree or of the environment', async () => {
    await using at = await desk();
    const trap = at.home.file('trap');
    const script = `#!/bin/sh\ntouch '${trap}'\n`;
    for (const hook of [
      'post-checkout',
      'post-index-change',
      'reference-transaction',
      'fsmonitor-watchman',
    ]) {
      at.code.write(`.git/hooks/${hook}`, script);
      chmodSync(join(at.code.path, '.git/hooks', hook), 0o755);
    }
    at.code.git('config', 'core.fsmonitor', join(at.code.path, '.git/hooks/fsmonitor-watchman'));
    at.code.git('config', 'diff.external', join(at.code.path, '.git/hooks/post-checkout'));
    process.env.GIT_DIR = '/nowhere';
    process.env.GIT_INDEX_FILE = trap;
    const child = await at.fork('fix');
    // A program that may write to the worktree must not choose the repository that git runs on.
    mkdirSync(at.home.file('evil'));
    gitIn(at.home.file('evil'), 'init', '--quiet');
    gitIn(at.home.file('evil'), 'config', 'core.fsmonitor', join(at.code.path, '.git/hooks/post-checkout'));
    writeFileSync(join(child.workspace, '.git'), `gitdir: ${at.home.file('evil/.git')}\n`);
    writeFileSync(join(child.workspace, 'a.txt'), 'changed\n');
    expect(changedIn(await child.finish())).toEqual(['changed a.txt']);
    expect(existsSync(trap)).toBe(false);
    delete process.env.GIT_DIR;
    delete process.env.GIT_INDEX_FILE;
    expect(leftIn(at)).toEqual(nothing);
  });
});

const { PATH = '' } = process.env;
afterEach(() => {
  process.env.PATH = PATH;
  delete process.env.GIT_DIR;
  delete process.env.GIT_INDEX_FILE;
});

describe.skipIf(skipsGit('worktrees that cannot be had'))('an impossible worktree', () => {
  const unusable: Readonly<Record<string, (dir: string) => void>> = {
    'a directory that is not there': () => {},
    'a file': (dir) => writeFileSync(dir, ''),
    'a directory without git': (dir) => mkdirSync(dir),
    'a bare repository': (dir) => {
      mkdirSync(dir);
      gitIn(dir, 'init', '--quiet', '--bare');
    },
    'a repository without a commit': (dir) => {
      mkdirSync(dir);
      gitIn(dir, 'init', '--quiet');
    },
  };
  test.each(Object.entries(unusable).filter((_, i) => isFull || i === 2))(
    'because of %s is refused before anything is forked',
    async (_, make) => {
      await using at = await desk();
      const dir = at.home.file('..repository');
      make(dir);
      const act = at.main.fork({ name: 'fix', workspace: 'worktree', repository: dir });
      const error = await refused(act);
      expect(error).toMatchObject({ code: 'SESSION_NO_REPOSITORY', data: { dir } });
      expect(error.message).toMatch(/^cannot fork '.*' with a worktree: '.*\.\.repository' is /);
      expect(await at.deck.find('fix')).toBeUndefined();
    },
  );

  test('without git, or without a home, forks nothing', async () => {
    await using at = await desk();
    process.env.PATH = '/nonexistent';
    const asked = { name: 'fix', workspace: 'worktree', repository: at.code.path } as const;
    expect(await refused(at.main.fork(asked))).toMatchObject({ code: 'SESSION_NO_GIT' });
    process.env.PATH = PATH;
    await using homeless = await openDeck({ store: at.deck.store });
    const main = await homeless.session('main');
    expect(await refused(main.fork(asked))).toMatchObject({ code: 'SESSION_BAD_INPUT' });
    expect(await at.deck.find('fix')).toBeUndefined();
  });

  test('that was removed by hand is reported, and its child can be discarded, or merged by force', async () => {
    await using at = await desk();
    const child = await at.fork('fix');
    rmSync(child.workspace, { recursive: true });
    const head = (await child.info()).head;
    const error = await refused(child.finish());
    expect(error).toMatchObject({ code: 'SESSION_NO_WORKSPACE', data: { path: child.workspace } });
    expect(error.message).toContain('was removed');
    expect(
      await refused(at.main.fork({ name: 'again', workspace: 'worktree', repository: child.workspace })),
    ).toMatchObject({
      code: 'SESSION_NO_REPOSITORY',
    });
    expect((await child.info()).head).toBe(head);
    await child.discard('it is gone');
    expect(await child.info()).toMatchObject({ delivery: 'discarded' });
    const other = await at.fork('other');
    rmSync(other.workspace, { recursive: true });
    const merged = await other.finish({ force: true });
    expect([merged.state, merged.artifact]).toEqual(['merged', undefined]);
    // The records of git for them keep what was committed there: the user who removed them decides.
    expect(leftIn(at)).toEqual({ home: [], git: [child.id, other.id].sort() });
  });

  test('because of the disk is a typed error, and succeeds once the disk recovers', async () => {
    await using at = await desk();
    const asked = { key: 'k', workspace: 'worktree', repository: at.code.path } as const;
    writeFileSync(at.home.file('worktrees'), 'in the way');
    expect(await refused(at.main.fork(asked))).toMatchObject({ code: 'SESSION_WORKSPACE_FAILED' });
    rmSync(at.home.file('worktrees'));
    const child = await at.main.fork(asked);
    writeFileSync(join(child.workspace ?? '', 'a.txt'), 'x\n');
    const { TMPDIR } = process.env;
    process.env.TMPDIR = '/dev/null/none';
    const failed = refused(child.finish());
    expect(await failed).toMatchObject({ code: 'SESSION_WORKSPACE_FAILED' });
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
    expect(changedIn(await child.finish())).toEqual(['changed a.txt']);
    expect(leftIn(at)).toEqual(nothing);
  });

  test.runIf(isFull)('a patch that is too large is refused whole, and the work stays', async () => {
    await using at = await desk();
    const child = await at.fork('fix');
    writeFileSync(join(child.workspace, 'large'), randomBytes(20 * 1024 * 1024));
    const head = (await child.info()).head;
    const error = await refused(child.finish());
    expect(error).toMatchObject({ code: 'SESSION_PATCH_TOO_LARGE', data: { bytesMax: 16 * 1024 * 1024 } });
    expect((await child.info()).head).toBe(head);
    expect(existsSync(join(child.workspace, 'large'))).toBe(true);
    rmSync(join(child.workspace, 'large'));
    expect(await child.finish()).toMatchObject({ artifact: { bytes: 0, files: [] }, complete: true });
    expect(leftIn(at)).toEqual(nothing);
  });

  if (isFull)
    test('is recorded after what was saved of the last answer in it', async () => {
      await using at = await desk();
      const { id } = await at.fork('fix');
      const { store } = at.deck;
      const chunks = [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'I beg' },
      ].map((chunk, index) => ({ index, chunk }));
      await store.live.save([{ session: id, run: 'killed', chunks }]);
      await closeWorktree({ store, home: at.home.path }, id);
      expect(await store.live.read(id)).toEqual([]);
      const own = await Array.fromAsync(store.entries.read(id, { own: true, last: 3 }));
      expect(own.map(({ kind, name }) => name ?? kind)).toEqual([
        'message',
        'run/interrupted',
        'workspace/closed',
      ]);
    });

  if (isFull)
    test('that is locked, or contains another repository, is not removed', async () => {
      await using at = await desk();
      const [locked, nested] = [await at.fork('locked'), await at.fork('nested')];
      at.code.git('worktree', 'lock', '--reason', 'mine', locked.workspace);
      expect(await locked.finish()).toMatchObject({ state: 'merged' });
      expect(existsSync(locked.workspace)).toBe(true);
      at.code.git('worktree', 'unlock', locked.workspace);
      await locked.finish();
      expect(existsSync(locked.workspace)).toBe(false);
      const inner = join(nested.workspace, 'inner');
      mkdirSync(inner);
      gitIn(inner, 'init', '--quiet');
      const error = await refused(nested.finish());
      expect(error).toMatchObject({
        code: 'SESSION_WORKSPACE_FAILED',
        message: expect.stringContaining('inner'),
      });
      writeFileSync(join(inner, 'work'), 'of a day\n');
      gitIn(inner, 'add', 'work');
      gitIn(inner, 'commit', '--quiet', '-m', 'first');
      expect(changedIn(await nested.finish())).toEqual(['added inner']);
      expect(readFileSync(join(inner, 'work'), 'utf8')).toBe('of a day\n');
      expect(await workspaceOf({ store: at.deck.store, home: at.home.path }, 'nested')).toBe(
        nested.workspace,
      );
    });

  if (isFull)
    test('files without a worktree of git stay untouched', async () => {
      await using at = await desk();
      const child = await at.fork('fix');
      at.code.git('worktree', 'lock', child.workspace);
      await child.finish();
      writeFileSync(join(child.workspace, 'work'), 'of a day\n');
      rmSync(join(at.code.path, '.git/worktrees', child.id), { recursive: true });
      writeFileSync(at.home.file('answers.json'), JSON.stringify([{ text: 'Yes.' }]));
      const run = child.run('Go on.', { model: `script:${at.home.file('answers.json')}` });
      const error = await refused((async () => await run)());
      expect(error).toMatchObject({ code: 'SESSION_NO_WORKSPACE' });
      expect(error.message).toContain('is no longer a worktree of');
      expect(await refused(child.finish())).toMatchObject({ code: 'SESSION_WORKSPACE_FAILED' });
      expect((await at.deck.recover()).failed).toEqual([]);
      expect(readFileSync(join(child.workspace, 'work'), 'utf8')).toBe('of a day\n');
    });

  if (isFull)
    test('submodules of the repository stay unchanged, and block nothing', async () => {
      using library = tempRepository({ 'lib.txt': 'lib\n' });
      await using at = await desk();
      at.code.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library.path, 'lib');
      at.code.commit('with a submodule');
      const child = await at.fork('fix');
      expect(readdirSync(join(child.workspace, 'lib'))).toEqual([]);
      writeFileSync(join(child.workspace, 'a.txt'), 'x\n');
      expect(changedIn(await child.finish())).toEqual(['changed a.txt']);
      expect(leftIn(at)).toEqual(nothing);
    });
});
