import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type BuiltinOptions, builtins, type Reach } from '@tapedeck/runtime';
import { afterAll, expect, test } from 'vitest';
import { atFullSize } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const dir = tempDir();
afterAll(() => dir[Symbol.dispose]());
let places = 0;

function desk(
  files: Readonly<Record<string, string | Buffer>>,
  { mayReach, ...options }: BuiltinOptions & { readonly mayReach?: Reach } = {},
) {
  places += 1;
  const workspace = join(realpathSync(dir.path), `${places}`);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(workspace, name)), { recursive: true });
    writeFileSync(join(workspace, name), content);
  }
  const tool = builtins(options).search_files;
  const search = async (input: object): Promise<string> =>
    String(
      await tool?.execute?.(input, {
        toolCallId: 'c1',
        messages: [],
        context: { directory: workspace, ...(mayReach !== undefined && { mayReach }) },
      }),
    );
  return { workspace, search };
}

test('lines with a text are found, in the order of their paths', async () => {
  const { search } = desk({
    'b.txt': 'needle at the start\nnothing\r\nand a needle, needle\r\n',
    'a/c.txt': 'x\n\nno end needle',
    binary: Buffer.from('needle\0'),
    dots: 'n.edle\n',
  });
  expect(await search({ pattern: 'needle' })).toBe(
    ['a/c.txt:3: no end needle', 'b.txt:1: needle at the start', 'b.txt:3: and a needle, needle'].join('\n'),
  );
  expect(await search({ pattern: 'n.edle' })).toBe('dots:1: n.edle');
  expect(await search({ pattern: 'NEEDLE' })).toBe('[no matches in 4 files]');
  expect(await search({ pattern: 'NEEDLE', ignore_case: true, path: 'a' })).toBe('a/c.txt:3: no end needle');
  expect(await search({ pattern: 'needle', path: 'b.txt' })).toContain('b.txt:3: and');
  expect(await search({ pattern: 'needle', files: 'a/**' })).toBe('a/c.txt:3: no end needle');
  expect(await search({ files: '*.txt' })).toBe('a/c.txt\nb.txt');
});

test.each([
  ['^x', 'a:1: xy'],
  ['y$', 'a:1: xy'],
  ['[^q]+', ['a:1: xy', 'a:3: ü-ü'].join('\n')],
  ['(?<!x)y', '[no matches in 1 file]'],
  ['^(?!x).+$', 'a:3: ü-ü'],
  ['\\p{L}-', 'a:3: ü-ü'],
  ['ü\\-', 'a:3: ü-ü'],
  ['x\\sü', '[no matches in 1 file]'],
  ['ü.ü', 'a:3: ü-ü'],
])('a regular expression finds within lines: %s', async (pattern, found) => {
  const { search } = desk({ a: 'xy\n\nü-ü\n' });
  expect(await search({ pattern, regex: true })).toBe(found);
});

test('what git ignores is left out, also by lists further down and above the directory', async () => {
  const { search } = desk({
    '.gitignore': '*.log\n/build\nnode_modules/\n',
    'a.log': 'x',
    'build/a': 'x',
    'sub/build/a': 'x',
    'sub/.gitignore': '!keep.log\nprivate\n',
    'sub/keep.log': 'x',
    'sub/other.log': 'x',
    'sub/private/a': 'x',
    'sub/deep/private': 'x',
    'node_modules/a/index.js': 'x',
    '.git/config': 'x',
    '.git/info/exclude': 'excluded\n',
    excluded: 'x',
    '.github/a': 'x',
  });
  expect((await search({ pattern: 'x' })).split('\n').map((line) => line.split(':')[0])).toEqual([
    '.github/a',
    'sub/build/a',
    'sub/keep.log',
  ]);
  expect(await search({ pattern: 'x', path: 'sub' })).toBe('sub/build/a:1: x\nsub/keep.log:1: x');
  // A file that is named is searched.
  expect(await search({ pattern: 'x', path: 'a.log' })).toBe('a.log:1: x');
});

test.runIf(atFullSize)(
  'a pattern that goes back and forth for ever is stopped, and the event loop is not held for long',
  async () => {
    const { search } = desk({ a: 'found: aab\n', b: `${'a'.repeat(40)}!\n` });
    const started = performance.now();
    expect(await search({ pattern: '^(a+)+$', regex: true })).toMatch(
      /^\[stopped: the pattern is too slow: it took longer than \d+ ms on a part of the files; 2 files were begun\]/,
    );
    expect(performance.now() - started).toBeLessThan(20_000);
    await expect(search({ pattern: '(', regex: true })).rejects.toMatchObject({ code: 'TOOL_BAD_PATTERN' });
  },
);

test('many matches come in pages, and long lines are cut around the match', async () => {
  const { search } = desk({
    a: 'match\n'.repeat(450),
    b: `${'x'.repeat(10_000)}match${'y'.repeat(10_000)}\n`,
  });
  const pages: string[] = [];
  for (let offset = 1; ; ) {
    const lines = (await search({ pattern: 'match', offset })).split('\n');
    const note = /^\[cut: .*read on with (.*)\]$/.exec(lines.at(-1) ?? '');
    pages.push(...(note === null ? lines : lines.slice(0, -1)));
    if (note === null) break;
    ({ offset } = JSON.parse(note[1] ?? ''));
  }
  expect(pages).toHaveLength(451);
  expect(pages[449]).toBe('a:450: match');
  expect(pages[450]).toMatch(/^b:1: …x{100}matchy{195}…$/);
  expect(await search({ pattern: 'ma[t]ch', regex: true, path: 'b' })).toBe(pages[450]);
});

test('a file that is too large is not searched, and the answer says so', async () => {
  const { search } = desk({ a: 'x'.repeat(300_000), b: 'x\n' }, { fileBytes: 290_000 });
  expect(await search({ pattern: 'x' })).toBe('b:1: x\n[not searched: 1 large file, 0 unreadable files]');
});

test('what is neither a file nor a directory is refused with its kind, and a directory that has one is searched', async () => {
  const { search, workspace } = desk({ 'a.txt': 'x' });
  execFileSync('mkfifo', [join(workspace, 'pipe')]);
  symlinkSync('pipe', join(workspace, 'link'));
  for (const [path, why] of [
    ['pipe', 'it is a pipe'],
    ['link', 'it is a pipe'],
    ['/dev/zero', 'it is a device'],
  ])
    await expect(search({ pattern: 'x', path })).rejects.toThrow(
      `cannot search '${path}': ${why} (TOOL_NOT_A_FILE)`,
    );
  expect(await search({ pattern: 'x' })).toBe('a.txt:1: x');
});

test('files that the rules do not allow, and links, are not shown', async () => {
  const { search, workspace } = desk(
    { 'a.txt': 'x', '.env': 'x=1', 'sub/b.txt': 'x' },
    { mayReach: (_, path) => !path.endsWith('.env') },
  );
  symlinkSync('/etc', join(workspace, 'etc'));
  symlinkSync('/etc/passwd', join(workspace, 'passwd'));
  expect(await search({ pattern: 'x' })).toBe('a.txt:1: x\nsub/b.txt:1: x');
});

test('a directory that becomes a link during the search shows nothing of its target', async () => {
  const outside = desk({ 'secret.txt': 'x secret' });
  const { search, workspace } = desk(
    { 'a.txt': 'x', 'sub/secret.txt': 'x mine' },
    {
      mayReach: (_, path) => {
        if (path.endsWith('/a.txt')) {
          renameSync(join(workspace, 'sub'), join(workspace, 'was'));
          symlinkSync(outside.workspace, join(workspace, 'sub'));
        }
        return true;
      },
    },
  );
  expect(await search({ pattern: 'x' })).not.toContain('secret.txt:1: x secret');
});
