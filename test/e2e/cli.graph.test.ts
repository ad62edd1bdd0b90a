import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { tempHome } from '../support/temp-home.ts';

const lines = (text: string) => text.split('\n').slice(0, -1);

/** Sessions that have nothing to do with each other, and an orchestrator with ten merged children. */
function manySessions(roots: number) {
  const home = tempHome();
  using store = home.open();
  store.sessions.open('main');
  for (let n = 1; n <= 10; n += 1) {
    const { session } = store.lineage.fork('main', { name: `c${n}` });
    store.entries.append(session, [assistant('Done.')]);
    store.lineage.merge(session);
  }
  for (let n = 1; n <= roots; n += 1) {
    store.sessions.open(`s${n}`);
    store.entries.append(`s${n}`, [user('hello')]);
  }
  return home;
}

describe('graph draws', () => {
  test('unrelated sessions as rows of their own, newest first, and folds what was merged', async () => {
    using home = manySessions(20);
    const { stdout, stderr, code } = await home.here(['graph']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(lines(stdout)).toEqual([
      ...Array.from({ length: 20 }, (_, i) => `○  s${20 - i} active`),
      '○  main active',
      '├─●  c10 [subagent] merged 20-21 → main@20, from main 1-19',
      '├─●  c9 [subagent] merged 18-19 → main@18, from main 1-17',
      '├─●  c8 [subagent] merged 16-17 → main@16, from main 1-15',
      '╰─⋮  and 7 more merged children',
    ]);
    // A message makes a session the newest.
    home.session('s1', user('again'));
    expect(lines((await home.here(['graph'])).stdout)[0]).toBe('○  s1 active');
    expect(lines((await home.here(['graph', '--all'])).stdout)).toHaveLength(31);
    expect(lines((await home.here(['graph', '--all'])).stdout)[0]).toBe('○  s1 active');
  });

  test('a screenful: fifty rows, or those of the terminal, and says how many are missing', async () => {
    using home = manySessions(60);
    const piped = lines((await home.here(['graph'])).stdout);
    expect(piped).toHaveLength(51);
    expect([piped[0], piped[50]]).toEqual(['○  s60 active', 'and 21 more (--all)']);
    const shown = lines((await home.here(['graph', '--no-color'], { isTerminal: true })).stdout);
    expect(shown).toHaveLength(23);
    expect(shown[22]).toBe('and 49 more (--all)');
    expect(lines((await home.here(['graph', '--all'], { isTerminal: true })).stdout)).toHaveLength(71);
  });

  test('the same from the database, which is read in parts, as from the file', async () => {
    using home = manySessions(250);
    const draw = (...args: readonly string[]) => home.here(['graph', ...args]);
    const forms = [['--format', 'dot'], ['--format', 'mermaid'], ['--format', 'tree'], ['--jsonl']];
    const fromDatabase = await Promise.all(forms.map((form) => draw(...form)));
    const image = await draw('--format', 'svg', '--all');
    await draw('-o', home.file('all.dot'));
    expect(readFileSync(home.file('all.dot'), 'utf8')).toBe(fromDatabase[0]?.stdout);
    rmSync(home.db);
    expect(await Promise.all(forms.map((form) => draw(...form)))).toEqual(fromDatabase);
    const { stdout } = await draw('--format', 'svg', '--all');
    expect(lines(stdout).toSorted()).toHaveLength(lines(image.stdout).length);
    for (const { stdout: text } of fromDatabase) expect(text).toContain('s250');
    expect(image.stdout).toContain('>s250 active</text>');
  });

  test('the newest N sessions, and those since a time, with their ancestors', async () => {
    using home = manySessions(3);
    {
      using store = home.open();
      store.lineage.fork('c2', { name: 'late' });
      store.entries.append('late', [user('go on')]);
    }
    expect(lines((await home.here(['graph', '-n', '2'])).stdout)).toEqual([
      '○  main active',
      '├─●  c2 [subagent] merged 4-5 → main@4, from main 1-3',
      '│ ╰─○  late [subagent] active, from c2 1-5',
      '╰─⋮  and 9 more children',
      '○  s3 active',
      'and 2 more (--all)',
    ]);
    expect(json(await home.here(['graph', '-n', '1', '--json']))).toMatchObject([
      { session: 'main', children: [{ session: 'c2', children: [{ session: 'late' }] }] },
    ]);
    expect(lines((await home.here(['graph', '--since', '2000-01-01'])).stdout)).toHaveLength(9);
    expect(await home.here(['graph', '--since', '2999-01-01'])).toMatchObject({ stdout: '', code: 0 });
    expect(await home.here(['graph', '--since', 'noon'])).toMatchObject({ code: 2 });
  });

  test('the family of a session: its ancestors and all of its descendants', async () => {
    using home = manySessions(3);
    {
      using store = home.open();
      store.lineage.fork('c2', { name: 'late' });
    }
    expect(lines((await home.here(['graph', 'c2'])).stdout)).toEqual([
      '○  main active',
      '╰─●  c2 [subagent] merged 4-5 → main@4, from main 1-3',
      '  ╰─○  late [subagent] active, from c2 1-5',
    ]);
    expect(lines((await home.here(['graph', 'main'])).stdout)).toHaveLength(12);
    expect(lines((await home.here(['graph', 's1', '--format', 'tree'])).stdout)).toHaveLength(1);
    expect(await home.here(['graph', 'nain'])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("'main'"),
    });
    expect(await home.here(['graph', 'main', '-n', '3'])).toMatchObject({ code: 2 });
  });
});

describe('graph -o', () => {
  test.each([
    ['x.svg', /^<svg .*>main active<\/text>.*<\/svg>\n$/s],
    ['x.DOT', /^digraph sessions \{/],
    ['x.mmd', /^flowchart TD\n/],
    ['x.json', /^\[\{"session":"main"/],
  ])('writes %s in the format of its ending, and replaces what was there', async (name, form) => {
    using home = manySessions(3);
    const file = home.file(name);
    writeFileSync(file, 'old');
    expect(await home.here(['graph', '-o', file])).toEqual({
      code: 0,
      stdout: '',
      stderr: `Wrote ${file}\n`,
    });
    expect(readFileSync(file, 'utf8')).toMatch(form);
    expect(readdirSync(home.path).filter((entry) => entry.endsWith('.part'))).toEqual([]);
  });

  test('refuses another ending, another format and a directory, and leaves no draft', async () => {
    using home = manySessions(1);
    for (const argv of [
      ['-o', home.file('x.png')],
      ['-o', home.path],
      ['-o', home.file('x.svg'), '--format', 'dot'],
      ['-o', home.file('x.svg'), '--json'],
    ])
      expect(await home.here(['graph', ...argv]), argv.join(' ')).toMatchObject({ code: 2, stdout: '' });
    const missing = home.file('none/x.svg');
    expect(await home.here(['graph', '-o', missing])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`cannot write the picture '${missing}'`),
    });
    expect(readdirSync(home.path).filter((entry) => /png|svg|part/.test(entry))).toEqual([]);
  });
});

test('blame has one row for each part of the view, and the same as JSON', async () => {
  using home = manySessions(0);
  const rows = lines((await home.here(['blame', 'c2'])).stdout).map((row) => row.split('\t').slice(0, 5));
  expect(rows).toEqual([
    ['↑3', 'merge', 'main', '@3', 'c1 2-3'],
    ['5', 'assistant', 'c2', '@3', ''],
  ]);
  expect(json(await home.here(['blame', 'c2', '--json']))).toMatchObject([
    { seq: 3, inherited: true, turn: 3, from: [{ session: 'c1', range: [2, 3] }] },
    { seq: 5, session: 'c2', inherited: false, turn: 3, from: [] },
  ]);
  expect((await home.here(['blame', 'c2', '--quiet'])).stdout).toBe('main@3\nc2@5\n');
  expect(await home.here(['blame', 'nobody'])).toMatchObject({ code: 3 });
  expect(await home.here(['blame', 'c2', '--policy', 'odd'])).toMatchObject({ code: 2 });
});

test('blame has headings on a terminal, turns, and of a merge the first words of its result', async () => {
  using home = manySessions(0);
  const model = 'acme/planner-with-a-long-name-2026-11';
  home.session('plan', user('Plan it.'), assistant('Planned. And more.', { model, run: 'r-123456' }));
  {
    using store = home.open();
    store.lineage.fork('plan', { name: 'check-the-changelog-of-the-release' });
    store.entries.append('check-the-changelog-of-the-release', [assistant('The changelog is right.')]);
    store.lineage.merge('check-the-changelog-of-the-release');
  }
  const shown = async (columns: number) =>
    lines((await home.here(['blame', 'plan', '--no-color'], { isTerminal: true, columns })).stdout);
  const wide = (await shown(120)).map((row) => row.trim().split(/ {2,}/));
  expect(wide).toEqual([
    ['at', 'role', 'session', 'turn', 'by', 'run', 'text'],
    ['2', 'user', 'plan', '@2', 'Plan it.'],
    ['3', 'assistant', 'plan', '@2', model, '123456', 'Planned. And more.'],
    ['5', 'merge', 'plan', '@5', expect.stringMatching(/^check-.* 4-5$/), 'The changelog is right.'],
  ]);
  expect(await shown(40)).toEqual([
    ...['plan@2', '  user  turn @2', '  Plan it.'],
    ...['plan@3', '  assistant  turn @2', `  ${model}`, '  Planned. And more.'],
    ...[
      'plan@5',
      '  merge  turn @5',
      '  check-the-changelog-of-the-release 4-5',
      '  The changelog is right.',
    ],
  ]);
});

test('a row of wide characters fits the columns of the terminal', async () => {
  using home = tempHome();
  home.session('main');
  // No name of ours has such characters. Those in the graph file of another program may.
  using other = tempHome();
  writeFileSync(other.graph, readFileSync(home.graph, 'utf8').replace('"main"', `"${'会話'.repeat(30)}"`));
  const [row = ''] = lines((await other.here(['graph', '--color', 'never'], { isTerminal: true })).stdout);
  // Three columns of the lane, 38 characters of two columns each, and the ellipsis.
  expect(row).toBe(`○  ${'会話'.repeat(19)}…`);
});

test('sessions of other realms are drawn by their last messages, too', async () => {
  using home = tempHome();
  for (const [base, name] of [
    ['tape', 'main'],
    ['acme', 'main'],
    ['acme', 'other'],
    ['tape', 'last'],
  ] as const)
    await home.here(['new', name, '--base', base]);
  expect(lines((await home.here(['graph'])).stdout)).toEqual([
    '○  last active',
    '○  other active',
    '○  acme:main active',
    '○  tape:main active',
  ]);
  expect(lines((await home.here(['graph', '-n', '2'])).stdout)).toEqual([
    '○  last active',
    '○  other active',
    'and 2 more (--all)',
  ]);
  expect(lines((await home.here(['graph', 'other'])).stdout)).toEqual(['○  other active']);
});
