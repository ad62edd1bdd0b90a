import { stripVTControlCharacters } from 'node:util';
import { assistant, toolCall, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';
import { terminalHome } from '../support/terminal-home.ts';

const parent = 'release-of-the-shop-as-a-person-names-it-2026-11-24';
const child = 'check-everything-that-the-release-notes-promise-0001';

/** Sessions with long names, and texts that a terminal draws in two columns for each character. */
function withLongNames(): TempHome {
  const home = tempHome();
  using store = home.open();
  store.sessions.open(parent, { title: '合計は正しいですか？ 🧾 '.repeat(8) });
  const usage = { input: 123_456, output: 234_567, cacheRead: 7_654_321, cacheWrite: 1, reasoning: 9 };
  store.entries.append(parent, [
    user('家族 🎉 '.repeat(60)),
    assistant('絵文字 🎉 '.repeat(50), { model: 'acme/very-long-model-name-2026-01-01', usage }),
  ]);
  store.lineage.fork(parent, { name: child, title: '絵文字 🎉 '.repeat(20) });
  store.entries.append(child, [assistant('結果 🎉 '.repeat(40))]);
  store.lineage.fork(child, { name: `${child}-again`, title: '合計'.repeat(40) });
  store.lineage.merge(child);
  const call = toolCall('call_1', 'deploy', { text: '絵文字 🎉 '.repeat(20) });
  store.entries.append(parent, [assistant([call])]);
  return home;
}

/** Columns of a line, counted otherwise than the command counts them. */
function columnsOf(line: string): number {
  const wide = line.match(/\p{Lo}|\p{Emoji_Presentation}|[\uff00-\uff60]/gu) ?? [];
  return Array.from(stripVTControlCharacters(line)).length + wide.length;
}

/** A name, a point, a path or a command alone on its line, which a reader copies: it may be longer than the line. */
const typed = /^ *(?:["'(]*[\w@%+=:./~^{}…-]+[\])>"',;:.!?]*|\((?:[a-z]+: )?tape [^()]*\))$/;

/** The rows that are wider than a terminal, without those that are one word which may be. */
const tooWide = (text: string, columns: number): readonly string[] =>
  text.split('\n').filter((row) => columnsOf(row) > columns && !typed.test(stripVTControlCharacters(row)));

const listings = [
  '--help',
  'help --all',
  'help log',
  'sessions',
  'sessions --tree',
  'overview',
  'status --all',
  `status ${parent}`,
  `children ${parent}`,
  `children ${child}`,
  'usage',
  'usage --tree',
  `usage ${parent}`,
  `usage ${parent} --tree`,
  `lineage ${parent}`,
  'graph',
  `graph ${child}`,
  'graph --format tree',
  `log ${parent}`,
  `log ${parent} --oneline`,
  `log ${parent} --graph`,
  `log ${parent} --all`,
  `blame ${parent}`,
  'search 絵文字',
];

test.each([60, 80, 120])(
  'every listing fits %i columns, whatever names and texts it has',
  async (columns) => {
    using home = withLongNames();
    for (const line of listings) {
      const { stdout } = await home.here(line.split(' '), { isTerminal: true, columns });
      expect(tooWide(stdout, columns), `tape ${line}`).toEqual([]);
      expect(stdout, `tape ${line}`).not.toBe('');
    }
  },
);

test.each([60, 80, 120])(
  'sums, traces, metadata and findings are broken into lines of %i columns',
  async (columns) => {
    using home = withLongNames();
    const tools = Array.from({ length: 12 }, (_, i) => `mcp__server_with_a_name__tool_${i}`);
    const meta = { model: 'acme/very-long-model-name-2026-01-01', run: 'r1', note: '絵文字 🎉 '.repeat(20) };
    home.session(
      'tools',
      user('Go'),
      assistant(tools.map((name, i) => toolCall(`c${i}`, name, {}))),
      user('On', meta),
    );
    const lines = {
      'log tools --stat': /^calls .*\n {10}\S/m,
      [`trace ${parent}@4`]: new RegExp(`from ${child}`),
      'show tools@4': /^meta .*\n {6}\S/m,
      audit: /\(next:/,
    };
    for (const [line, expected] of Object.entries(lines)) {
      const { stdout } = await home.here(line.split(' '), { isTerminal: true, columns });
      expect(tooWide(stdout, columns), `tape ${line}`).toEqual([]);
      expect(stripVTControlCharacters(stdout), `tape ${line}`).toMatch(expected);
      // A pipe gets whole lines.
      const piped = (await home.here(line.split(' '))).stdout;
      expect(piped.split('\n').length, `tape ${line}`).toBeLessThan(stdout.split('\n').length);
    }
  },
);

const readings = [
  ...['log', 'log --full', 'log --oneline', 'log --all', 'log --hidden --full', 'log --stat', 'log --graph'],
  ...[
    'show',
    'view',
    'view --explain',
    'view --policy full',
    'blame',
    'blame --policy full',
    'lineage',
    'graph',
  ],
  ...[
    'usage',
    'usage --tree',
    'children',
    'status',
    'trace',
    'logs',
    'logs --verbose',
    'diff',
    'permissions',
  ],
];
const overviews = [
  ...[
    'sessions',
    'sessions --tree',
    'overview',
    'status --all',
    'usage',
    'usage --tree',
    'graph',
    'graph --all',
  ],
  ...[
    'search release',
    'search round',
    'check',
    'audit',
    'verify',
    'help',
    'help --all',
    'help log',
    'help points',
  ],
  ...['config list --all --show-origin', 'config list', 'help config', 'help models', 'help exit-codes'],
  ...['show main@6', 'show shop@5', 'show shop@12', 'show release@head', 'diff tests release', 'trust'],
];

test.each(sized([40], [40, 80], [40, 80, 120]))(
  'of the demo and of the fixtures, nothing that reads is wider than %i columns, with and without colours',
  async (columns) => {
    using home = await terminalHome();
    const of = (verb: string, name: string) => {
      const [word = '', ...options] = verb.split(' ');
      const place = word === 'trace' ? `${name}@head` : name;
      return [word, place, ...(word === 'diff' ? ['main'] : []), ...options].join(' ');
    };
    const names = sized(
      ['release'],
      ['main', 'shop', 'parser', 'release', 'deploy', 'tests'],
      ['main', 'shop', 'parser', 'release'],
    );
    const lines = [...overviews, ...readings.flatMap((verb) => names.map((name) => of(verb, name)))];
    const wide: string[] = [];
    for (const [i, line] of lines.entries()) {
      const env = i % 2 === 0 ? { NO_COLOR: '1' } : {};
      const { stdout, stderr } = await home.here(line.split(' '), { isTerminal: true, columns, env });
      if (stdout === '' && stderr === '') wide.push(`${line}: nothing`);
      wide.push(...tooWide(stdout, columns).map((row) => `${line}: ${row}`));
    }
    expect(wide).toEqual([]);
  },
);

test.each([40, 60, 80])(
  'at %i columns, no name, point, key or command that a reader copies is cut in two',
  async (columns) => {
    using home = withLongNames();
    await home.here([
      'config',
      'set',
      'alias.the-conversation-of-the-last-release',
      `log ${parent} --oneline`,
    ]);
    const at = async (line: string) =>
      stripVTControlCharacters((await home.here(line.split(' '), { isTerminal: true, columns })).stdout)
        .split('\n')
        .flatMap((row) => row.trim().split(' '));
    const whole: Readonly<Record<string, readonly string[]>> = {
      'search 絵文字': [`${parent}@3`, `${parent}@6`],
      [`log ${parent}`]: [child],
      [`blame ${parent} --policy full`]: columns === 40 ? [`${parent}@2`, `${parent}@3`, child] : [],
      [`diff ${parent} ${child}`]: [`${parent}@6:`, `${child}@5:`],
      'config list': ['alias.the-conversation-of-the-last-release', parent],
      'config list --show-origin': ['alias.the-conversation-of-the-last-release', parent],
      [`show ${parent}@2`]: [`tape:${parent}`],
    };
    for (const [line, words] of Object.entries(whole))
      expect(await at(line), line).toEqual(expect.arrayContaining([...words]));
  },
);

test('where the beginnings of names have no room, their ends tell the children of a session apart', async () => {
  using home = withLongNames();
  const { stdout } = await home.here(['sessions', '--no-color'], { isTerminal: true, columns: 60 });
  expect(stdout).toMatch(/^check-.+….*-0001 {2}merged/m);
});

test('a usage that is too wide leaves out columns without a number, then shortens numbers', async () => {
  using home = tempHome();
  const usage = { input: 1000, output: 234, cacheRead: 55_484 };
  home.session('main', user('Go'), assistant('Done.', { model: 'm', usage }));
  const heading = async (columns: number) =>
    (await home.here(['usage', 'main', '--no-color'], { isTerminal: true, columns })).stdout;
  expect(await heading(100)).toMatch(/^session .* reasoning .* cache write/);
  const [head, row] = (await heading(70)).split('\n').map((line) => line.split(/ {2,}/));
  expect(head).toEqual(['session', 'steps', 'input', 'output', 'cache read', 'total', 'window']);
  expect(row).toEqual(['main', '1', '1000', '234', '55484', '56718', '56718']);
  expect((await heading(50)).split('\n')[1]?.split(/ {2,}/)).toEqual([
    'main',
    '1',
    '1.0k',
    '234',
    '55k',
    '57k',
    '57k',
  ]);
});
