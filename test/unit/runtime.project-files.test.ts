import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { DeckOptions, Instructions } from '@tapedeck/runtime';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

/** A place for projects, the user's own directory, in which files are written by their paths. */
function place() {
  const dir = tempDir();
  const home = realpathSync(dir.path);
  const path = (name: string) => {
    const full = join(home, name);
    mkdirSync(dirname(full), { recursive: true });
    return full;
  };
  return {
    home,
    path,
    write: (name: string, text: string | Uint8Array) => writeFileSync(path(name), text),
    told: async (cwd: string, options: Omit<DeckOptions, 'home'> = {}) => {
      using store = openStore();
      await using deck = await openDeck({
        store,
        cwd: join(home, cwd),
        env: { HOME: home },
        prompt: { project: true },
        ...options,
      });
      const given = await (await deck.session('main')).instructions();
      return { ...given, omitted: given.omitted.map(({ path: at, why }) => [relative(home, at), why]) };
    },
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

const filesIn = (home: string, { sources }: Pick<Instructions, 'sources'>) =>
  sources.flatMap(({ path }) => (path === undefined ? [] : [relative(home, path)]));

test('project files are read from the top of the repository down to the directory, and none above it', async () => {
  using p = place();
  for (const name of [
    'AGENTS.md',
    'code/CLAUDE.md',
    'code/AGENTS.md',
    'code/app/CONTEXT.md',
    'code/other/AGENTS.md',
  ])
    p.write(name, `in ${name}`);
  mkdirSync(p.path('code/.git'));
  const { text, omitted, ...rest } = await p.told('code/app', { instructions: 'You keep the shop.' });
  expect(filesIn(p.home, rest)).toEqual(['code/AGENTS.md', 'code/CLAUDE.md', 'code/app/CONTEXT.md']);
  expect(text).toMatch(/^You keep the shop\.\n\n# Project instructions\n/);
  expect(text).toContain('<file path="app/CONTEXT.md">\nin code/app/CONTEXT.md\n</file>');
  expect(omitted).toEqual([]);
  const named = await p.told('.', { prompt: { project: 'code/other' } });
  expect(filesIn(p.home, named)).toEqual(['code/AGENTS.md', 'code/CLAUDE.md', 'code/other/AGENTS.md']);
});

test("without a repository the search ends at the user's own directory; outside of that, it reads none", async () => {
  using p = place();
  for (const name of ['AGENTS.md', 'notes/AGENTS.md', 'notes/today/AGENTS.md']) p.write(name, name);
  expect(filesIn(p.home, await p.told('notes/today'))).toEqual([
    'AGENTS.md',
    'notes/AGENTS.md',
    'notes/today/AGENTS.md',
  ]);
  const outside = await p.told('notes/today', { env: { HOME: join(p.home, 'user') } });
  expect(filesIn(p.home, outside)).toEqual(['notes/today/AGENTS.md']);
});

test('a duplicate file is included once; an empty one adds nothing; a missing directory is reported', async () => {
  using p = place();
  p.write('code/AGENTS.md', 'the same');
  symlinkSync('AGENTS.md', p.path('code/CLAUDE.md'));
  p.write('code/CONTEXT.md', 'the same');
  p.write('code/app/AGENTS.md', ' \n');
  mkdirSync(p.path('code/.git'));
  expect(filesIn(p.home, await p.told('code/app'))).toEqual(['code/AGENTS.md']);
  const nowhere = await p.told('code/none');
  expect(nowhere).toMatchObject({ omitted: [['code/none', 'the directory does not exist']] });
  expect(filesIn(p.home, nowhere)).toEqual(['code/AGENTS.md']);
});

const cases: readonly {
  name: string;
  make: (path: string, home: string) => void;
  why: string;
}[] = [
  {
    name: '10 MB',
    make: (path) => writeFileSync(path, 'x'.repeat(10_000_000)),
    why: 'it is larger than 64 KiB',
  },
  {
    name: 'one byte too many',
    make: (path) => writeFileSync(path, 'x'.repeat(65_537)),
    why: 'it is larger than 64 KiB',
  },
  {
    name: 'a NUL',
    make: (path) => writeFileSync(path, 'a\0b'),
    why: 'it contains the control character U+0000',
  },
  {
    name: 'an escape',
    make: (path) => writeFileSync(path, 'a\x1b[2Jb'),
    why: 'it contains the control character U+001B',
  },
  {
    name: 'a C1 control',
    make: (path) => writeFileSync(path, 'a\u009bb'),
    why: 'it contains the control character U+009B',
  },
  {
    name: 'bytes that are no UTF-8',
    make: (path) => writeFileSync(path, Uint8Array.of(0x61, 0xff)),
    why: 'it is not UTF-8',
  },
  { name: 'UTF-16', make: (path) => writeFileSync(path, '\ufeffhi', 'utf16le'), why: 'it is not UTF-8' },
  { name: 'a directory', make: (path) => mkdirSync(path), why: 'it is a directory' },
  { name: 'a pipe', make: (path) => void execFileSync('mkfifo', [path]), why: 'it is not a regular file' },
  { name: 'a link to itself', make: (path) => symlinkSync(path, path), why: 'its links form a loop' },
  { name: 'a link to nothing', make: (path) => symlinkSync('none', path), why: 'it is a broken link' },
];

test.each(cases)('$name in the place of instructions is omitted, and reported', async ({ make, why }) => {
  using p = place();
  make(p.path('code/AGENTS.md'), p.home);
  p.write('code/CLAUDE.md', 'well');
  mkdirSync(p.path('code/.git'));
  const told = await p.told('code');
  expect(told.omitted).toEqual([['code/AGENTS.md', why]]);
  expect(filesIn(p.home, told)).toEqual(['code/CLAUDE.md']);
});

test('a link out of the project is not followed', async () => {
  using p = place();
  p.write('secret', 'the password');
  symlinkSync('../secret', p.path('code/AGENTS.md'));
  mkdirSync(p.path('code/.git'));
  const told = await p.told('code');
  expect(told.text).toBeUndefined();
  expect(told.omitted).toEqual([
    ['code/AGENTS.md', `it is a link to a path outside '${join(p.home, 'code')}'`],
  ]);
});

test.skipIf(process.getuid?.() === 0)(
  'an unreadable file is omitted, and reported (needs a user that is not root)',
  async () => {
    using p = place();
    p.write('code/AGENTS.md', 'mine');
    chmodSync(p.path('code/AGENTS.md'), 0);
    expect((await p.told('code')).omitted).toEqual([['code/AGENTS.md', 'permission denied']]);
  },
);

test('a text of the greatest size is included, and of many texts the nearest', async () => {
  using p = place();
  const levels = ['a', 'a/b', 'a/b/c', 'a/b/c/d', 'a/b/c/d/e'];
  for (const [i, level] of levels.entries()) p.write(`${level}/AGENTS.md`, String(i).repeat(65_536));
  const told = await p.told('a/b/c/d/e');
  expect(filesIn(p.home, told)).toEqual(levels.slice(1).map((level) => `${level}/AGENTS.md`));
  expect(told.omitted).toEqual([['a/AGENTS.md', "with it the project's files would exceed 256 KiB"]]);
});

const skill = (head: string, body = 'Do it well.') => `---\n${head}\n---\n\n${body}\n`;

test('skills are listed by name, from folders that are one or contain some', async () => {
  using p = place();
  p.write('skills/release/SKILL.md', skill('name: release\ndescription: >-\n  How we\n  release'));
  p.write('skills/count/SKILL.md', skill('description: "How to count"'));
  p.write('skills/README.md', 'no skill');
  p.write('one/SKILL.md', skill(`name: one\ndescription: ${'long '.repeat(100)}`));
  const prompt = { skills: ['one', 'skills', './one'] };
  const told = await p.told('.', { prompt });
  expect(told.text?.split('\n').filter((line) => line.startsWith('- '))).toEqual([
    '- count: How to count',
    `- one: ${'long '.repeat(60).slice(0, 299)}…`,
    '- release: How we release',
  ]);
  expect(told.omitted).toEqual([]);
  expect((await p.told('.', { prompt: { skills: ['skills', 'one'] } })).digest).toBe(told.digest);
});

test('a folder that is no skill is omitted, and reported without the contents of its file', async () => {
  using p = place();
  p.write('s/headless/SKILL.md', 'Do it well.');
  p.write('s/mute/SKILL.md', skill('name: mute'));
  p.write('s/odd/SKILL.md', skill('name: "two words"\ndescription: d'));
  p.write('s/broken/SKILL.md', skill('password: "secret'));
  p.write('s/x-first/SKILL.md', skill('name: same\ndescription: first'));
  p.write('s/x-later/SKILL.md', skill('name: same\ndescription: later'));
  p.write('s/large/SKILL.md', skill('description: d', 'x'.repeat(100_000)));
  p.write('secret', skill('description: d'));
  symlinkSync('../../secret', p.path('s/leading/SKILL.md'));
  p.write('empty/file', '');
  const { omitted, text } = await p.told('.', { prompt: { skills: ['s', 'empty', 'none', 'secret'] } });
  expect(Object.fromEntries(omitted)).toEqual({
    empty: 'it contains no SKILL.md',
    none: 'the folder does not exist',
    secret: 'it is not a directory',
    's/broken/SKILL.md': 'its front matter is not YAML',
    's/headless/SKILL.md': 'it does not begin with front matter between two lines ---',
    's/large/SKILL.md': 'it is larger than 64 KiB',
    's/leading/SKILL.md': `it is a link to a path outside '${join(p.home, 's/leading')}'`,
    's/mute/SKILL.md': 'it has no description',
    's/odd/SKILL.md': 'its name is not one word of letters, digits, . _ : and -',
    's/x-later/SKILL.md': "another skill is named 'same'",
  });
  expect(text).toContain('- same: first');
});
