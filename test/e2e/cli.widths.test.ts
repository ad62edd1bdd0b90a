import { stripVTControlCharacters } from 'node:util';
import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { tempHome } from '../support/temp-home.ts';

/** Texts with the number of columns that a terminal draws them in. */
const texts: readonly (readonly [text: string, columns: number])[] = [
  ['plain', 5],
  ['naïve', 5],
  ['nai\u0308ve', 5],
  ['漢字', 4],
  ['한국어', 6],
  ['ｆｕｌｌ', 8],
  ['👍🏽', 2],
  ['🇨🇭', 2],
  ['❤️', 2],
  ['👩🏽‍💻', 2],
  ['👨‍👩‍👧‍👦', 2],
  ['❤️‍🔥', 2],
  ['❤‍🔥', 2],
  ['🏴‍☠️', 2],
  ['🏴󠁧󠁢󠁥󠁮󠁧󠁿', 2],
  ['می‌خواهم', 7],
  ['क्‍ष', 2],
  ['→ …', 3],
];

test('a line is cut to the columns of the terminal, whatever its characters', async () => {
  using home = tempHome();
  home.session('main', ...texts.map(([text]) => user(text.repeat(60))));
  const { stdout } = await home.here(['log', 'main', '--oneline', '--no-color', '--from', '2'], {
    isTerminal: true,
    columns: 60,
  });
  const lines = stdout.trimEnd().split('\n');
  // What stands before the text.
  const used = (lines[0] ?? '').indexOf('plain');
  for (const [i, [text, columns]] of texts.entries()) {
    const [, kept = ''] = /(.*)…$/.exec((lines[i] ?? '').slice(used)) ?? [];
    // One column is that of the ellipsis.
    expect([text, kept.split(text).length - 1]).toEqual([text, Math.floor((60 - used - 1) / columns)]);
  }
});

test.each([40, 60, 80, 120])(
  'a search of %i columns shows what was looked for, and says what is cut',
  async (columns) => {
    using home = tempHome();
    home.session(`session-${'x'.repeat(20)}`, user(`${'合計 '.repeat(20)}needle ${'after '.repeat(40)}`));
    const { stdout } = await home.here(['search', 'Needle'], {
      isTerminal: true,
      columns,
      env: { NO_COLOR: '1' },
    });
    const line = stdout.trimEnd().split('\n').at(-1) ?? '';
    expect(line).toMatch(/…[^…]*needle[^…]*…$/);
    for (const row of stdout.split('\n'))
      expect([...row].length + (row.match(/[合計]/g)?.length ?? 0)).toBeLessThanOrEqual(columns);
  },
);

test.each([
  [['--color', 'always'], {}, true],
  [['--color', 'never'], {}, false],
  [['--no-color'], {}, false],
  [[], { NO_COLOR: '1' }, false],
  [[], { TERM: 'dumb' }, false],
  [[], {}, true],
])('a terminal gets colours with %j and %j: %s', async (args, env, expected) => {
  using home = tempHome();
  home.session('main', user('Hello'));
  const { stdout } = await home.here(['log', 'main', '--oneline', ...args], { isTerminal: true, env });
  expect(stdout.includes('\u001b[')).toBe(expected);
});

test.each([
  'overview',
  'log main',
  'log main --oneline',
  'log main --graph',
  'sessions',
  'sessions --tree',
  'children main',
  'status --all',
  'status main',
  'graph',
  'graph --format tree',
  'lineage main',
  'show main@2',
  'view main',
  'diff main child',
  'search Hello',
  'config list --all --show-origin',
  'check',
  'help log',
])('%s gives a pipe colours with --color always alone, and else the same', async (line) => {
  const args = line.split(' ');
  using home = tempHome();
  home.session('main', user('Hello'));
  {
    using store = home.open();
    store.lineage.fork('main', { name: 'child' });
    store.entries.append('child', [user('Hello, **child**')]);
    store.sessions.update('child', { task: 'failed' });
  }
  const plain = await home.here(args, { columns: 120 });
  expect(plain.stdout).not.toContain('\u001b[');
  const terminal = await home.here(args, { isTerminal: true, columns: 120 });
  expect(terminal.stdout).toContain('\u001b[');
  const coloured = await home.here([...args, '--color', 'always'], { columns: 120 });
  expect(coloured.stdout).toContain('\u001b[');
  expect(stripVTControlCharacters(coloured.stdout)).toBe(plain.stdout);
});

test('a long text of wide characters is broken into lines, each of them once', async () => {
  using home = tempHome();
  const text = '漢字かな'.repeat(10_000);
  home.session('main', user(text));
  const { stdout } = await home.here(['log', 'main', '--full', '--no-color'], {
    isTerminal: true,
    columns: 60,
  });
  const lines = stdout.split('\n').map((line) => line.slice(20).trimEnd());
  expect(lines.map((line) => line.replace(/ +\d{4}-.*Z$/, '')).join('')).toBe(text);
  expect(Math.max(...lines.slice(1).map((line) => line.length))).toBe(20);
});
