import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Entry } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { scriptedDeck } from '../support/scripted.ts';
import { tempDir } from '../support/temp-dir.ts';

const places = (entries: Iterable<Entry>) =>
  [...entries].flatMap(({ seq, meta }) => (meta.place === undefined ? [] : [[seq, meta.place]]));

test('each run records once where it works: directory, host, and what git has checked out there', async () => {
  using dir = tempDir();
  const cwd = dir.file('project');
  mkdirSync(`${cwd}/deep`, { recursive: true });
  await using home = await scriptedDeck([{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }], {
    cwd: `${cwd}/deep`,
  });
  const main = await home.deck.session('main');
  const host = hostname();
  await main.run('Go');
  expect(places(home.store.entries.read('main'))).toEqual([[2, { cwd: `${cwd}/deep`, host }]]);
  // The files of git are read, not git asked: a branch that is loose, packed, detached, and in a worktree.
  mkdirSync(`${cwd}/.git/refs/heads`, { recursive: true });
  writeFileSync(`${cwd}/.git/HEAD`, 'ref: refs/heads/main\n');
  const head = 'a'.repeat(40);
  writeFileSync(`${cwd}/.git/refs/heads/main`, `${head}\n`);
  const placeNow = async () => {
    await main.run('Again');
    const [, place] = places(home.store.entries.read('main')).at(-1) ?? [];
    return isObject(place) ? place.git : undefined;
  };
  expect(await placeNow()).toEqual({ head, branch: 'main' });
  rmSync(`${cwd}/.git/refs/heads/main`);
  writeFileSync(`${cwd}/.git/packed-refs`, `# pack-refs with: peeled\n${'b'.repeat(40)} refs/heads/main\n`);
  expect(await placeNow()).toEqual({ head: 'b'.repeat(40), branch: 'main' });
  expect(places(home.store.entries.read('main'))).toHaveLength(3);
  writeFileSync(`${cwd}/.git/HEAD`, `${head}\n`);
  // A run without an answer left in the script fails, and is recorded like the others.
  expect(await placeNow()).toEqual({ head });
  for (const bad of ['ref: refs/../../secret\n', 'nonsense', '', 'x'.repeat(10_000)]) {
    writeFileSync(`${cwd}/.git/HEAD`, bad);
    expect((await placeNow()) ?? {}).toEqual({});
  }
  rmSync(`${cwd}/.git/HEAD`);
  execFileSync('mkfifo', [`${cwd}/.git/HEAD`]);
  expect((await placeNow()) ?? {}).toEqual({});
});

test('a run in a worktree of git records the commit of that', async () => {
  using dir = tempDir();
  const [tree, other] = [dir.file('tree'), dir.file('other')];
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: tree })
      .toString()
      .trim();
  mkdirSync(tree);
  git('init', '-q', '-b', 'main');
  git('commit', '-q', '--allow-empty', '-m', 'one');
  git('worktree', 'add', '-q', '-b', 'side', other);
  git('commit', '-q', '--allow-empty', '-m', 'two');
  git('pack-refs', '--all');
  await using home = await scriptedDeck([{ text: 'One.' }], { cwd: other });
  const main = await home.deck.session('main');
  await main.run('Go');
  expect(places(home.store.entries.read('main'))).toEqual([
    [2, { cwd: other, host: hostname(), git: { head: git('rev-parse', 'side'), branch: 'side' } }],
  ]);
});

test('messages of the inbox and children without input record it too, and a message cannot claim it', async () => {
  using dir = tempDir();
  await using home = await scriptedDeck([{ text: 'One.' }, { text: 'Two.' }], { cwd: dir.path });
  const main = await home.deck.session('main');
  await main.send('Hello');
  await home.deck.idle();
  const [place] = places(home.store.entries.read('main'));
  expect(place).toEqual([2, { cwd: dir.path, host: hostname() }]);
  const [outcome] = await main.delegate({ task: 'Look', name: 'kid' });
  expect(outcome?.status).toBe('completed');
  expect(places(home.store.entries.read('kid', { own: true }))).toHaveLength(1);
  await expect(main.send('Hello', { meta: { place: { cwd: '/' } } })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
});
