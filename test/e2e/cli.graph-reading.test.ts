import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

function homeWithForks(): TempHome {
  const home = tempHome();
  home.session('main', user('hello'));
  using store = home.open();
  store.lineage.fork('main', { name: 'child' });
  store.entries.append('child', [assistant('Done.')]);
  store.lineage.merge('child');
  store.lineage.fork('child', { name: 'below' });
  return home;
}

const edit = (home: TempHome, change: (text: string) => string) =>
  writeFileSync(home.graph, change(readFileSync(home.graph, 'utf8')));

/** The commands that answer about the graph. */
const questions: readonly (readonly string[])[] = [
  ['graph', '--all'],
  ['graph', 'main'],
  ['lineage', 'child'],
  ['children', 'main'],
  ['trace', 'main@4'],
];

/** The first object of an answer, with what the answer says about the graph file. */
const first = (stdout: string): Record<string, unknown> => {
  const value: unknown = JSON.parse(stdout);
  return (Array.isArray(value) ? value[0] : value) as Record<string, unknown>;
};

describe('graph, lineage, children and trace answer from the database', () => {
  test.each([
    ['is missing', (home: TempHome) => rmSync(home.graph)],
    ['is empty', (home: TempHome) => writeFileSync(home.graph, '')],
    ['lacks lines', (home: TempHome) => edit(home, (text) => `${text.split('\n').slice(0, 2).join('\n')}\n`)],
    ['is torn', (home: TempHome) => edit(home, (text) => text.slice(0, -100))],
    [
      'cannot be read',
      (home: TempHome) => {
        rmSync(home.graph);
        mkdirSync(home.graph);
      },
    ],
  ])('when the graph file %s, with graph_lagging', async (_what, damage) => {
    using home = homeWithForks();
    const right = await Promise.all(questions.map((argv) => home.here([...argv, '--json'])));
    damage(home);
    for (const [i, argv] of questions.entries()) {
      const { code, stdout, stderr } = await home.here([...argv, '--json']);
      expect({ argv, code }).toEqual({ argv, code: 0 });
      expect(first(stdout).graph_lagging).toBe(true);
      expect(stdout.replaceAll(',"graph_lagging":true', '')).toBe(right[i]?.stdout);
      expect(stderr).toMatch(
        /^(?:The graph file ends at line|There is no graph file|cannot read graph)[: ].*\n$/,
      );
      expect(await home.here([...argv, '--quiet'])).toMatchObject({ code: 0, stderr: '' });
    }
  });

  test.each([
    [
      'whose last line was edited',
      (text: string) => text.replace('"session_id":"below"', '"session_id":"above"'),
    ],
    ['that was converted to CRLF', (text: string) => text.replaceAll('\n', '\r\n')],
    ['of other text', () => 'rubbish\n'],
    ['with other text at its end', (text: string) => `${text}rubbish\n`],
    ['with a line more', (text: string) => `${text}${text.split('\n')[0]?.replace('"g":1,', '"g":9,')}\n`],
  ])('beside a graph file %s, with graph_diverged and exit 5', async (_what, change) => {
    using home = homeWithForks();
    const right = await Promise.all(questions.map((argv) => home.here([...argv, '--json'])));
    const people = await Promise.all(questions.map((argv) => home.here(argv)));
    edit(home, change);
    for (const [i, argv] of questions.entries()) {
      const { code, stdout, stderr } = await home.here([...argv, '--json']);
      expect({ argv, code }).toEqual({ argv, code: 5 });
      expect(first(stdout).graph_diverged).toBe(true);
      expect(stdout.replaceAll(',"graph_diverged":true', '')).toBe(right[i]?.stdout);
      expect(stderr).toMatch(/^The graph file differs from the database at line \d; .* See: tape check\n$/);
      const shown = await home.here(argv);
      expect(shown).toEqual({ stdout: people[i]?.stdout, stderr, code: 5 });
    }
  });

  test('an edit in the middle that keeps the size is found by graph of all, and not drawn by the others', async () => {
    using home = homeWithForks();
    const before = await home.here(['lineage', 'child']);
    const newest = await home.here(['graph']);
    edit(home, (text) => text.replace('"session_id":"child"', '"session_id":"chile"'));
    expect(await home.here(['graph'])).toEqual(newest);
    const { code, stdout, stderr } = await home.here(['graph', '--all']);
    expect({ code, drawn: stdout.includes('chile') }).toEqual({ code: 5, drawn: false });
    expect(stderr).toContain('at line 2;');
    expect(await home.here(['lineage', 'child'])).toEqual(before);
  });

  test('fragments of a crash in the graph file are no difference', async () => {
    using home = homeWithForks();
    edit(home, (text) => `{"v":1,"g"\n\n${text}{"v":1`);
    appendFileSync(home.graph, '');
    for (const argv of questions) expect(await home.here(argv)).toMatchObject({ code: 0, stderr: '' });
  });

  test('pictures stay whole, and the exit code tells', async () => {
    using home = homeWithForks();
    for (const format of ['tree', 'dot', 'mermaid', 'json']) {
      const right = await home.here(['graph', '--format', format]);
      expect(right).toMatchObject({ code: 0, stderr: '' });
      const file = readFileSync(home.graph);
      writeFileSync(home.graph, 'rubbish');
      const wrong = await home.here(['graph', '--format', format]);
      expect(wrong.code).toBe(5);
      expect(wrong.stdout.replaceAll(',"graph_diverged":true', '')).toBe(right.stdout);
      writeFileSync(home.graph, file);
    }
  });
});

test('without a database, graph and lineage read the file', async () => {
  using home = homeWithForks();
  const asked = [
    ['graph'],
    ['graph', '--all'],
    ['graph', 'child'],
    ['graph', '-n', '1'],
    ['lineage', 'child'],
  ];
  const right = await Promise.all(asked.map((argv) => home.here(argv)));
  using copy = tempHome();
  writeFileSync(copy.graph, readFileSync(home.graph));
  expect(await Promise.all(asked.map((argv) => copy.here(argv)))).toEqual(right);
  expect((await copy.here(['graph', '--since', '2999-01-01'])).stderr).toBe('No sessions\n');
  expect(await copy.here(['graph', 'nobody'])).toMatchObject({ code: 3, stdout: '' });
  expect(json(await copy.here(['graph', '--json']))).toHaveLength(1);
});
