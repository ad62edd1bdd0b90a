import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

function homeWithFork(): TempHome {
  const home = tempHome();
  home.session('main', user('hello'));
  using store = home.open();
  store.lineage.fork('main', { name: 'child' });
  return home;
}

const textOf = (home: TempHome) => readFileSync(home.graph, 'utf8');

/** Changes of the graph file by hand, and whether the file is then another one, and not only behind. */
const damages: readonly (readonly [what: string, differs: boolean, damage: (home: TempHome) => void])[] = [
  [
    'a byte of its last line',
    true,
    (home) => writeFileSync(home.graph, textOf(home).replace('"child"', '"chile"')),
  ],
  [
    'a byte of its first line, and nothing at its end',
    true,
    (home) => writeFileSync(home.graph, textOf(home).replace('"main"', '"mine"')),
  ],
  ['CRLF', true, (home) => writeFileSync(home.graph, textOf(home).replaceAll('\n', '\r\n'))],
  ['rubbish', true, (home) => writeFileSync(home.graph, 'rubbish\n')],
  ['rubbish at its end', true, (home) => appendFileSync(home.graph, 'rubbish\n')],
  [
    'a line more',
    true,
    (home) => appendFileSync(home.graph, textOf(home).split('\n')[1]?.replace('"g":2', '"g":3') ?? ''),
  ],
  ['half a line less', false, (home) => writeFileSync(home.graph, textOf(home).slice(0, -200))],
  ['a line less', false, (home) => writeFileSync(home.graph, `${textOf(home).split('\n')[0]}\n`)],
  ['no byte', false, (home) => writeFileSync(home.graph, '')],
  ['no file', false, (home) => rmSync(home.graph)],
];

/** Commands that write, and print a document. */
const writes: readonly (readonly string[])[] = [
  ['new', 'main'],
  ['new', 'another'],
  ['append', 'main'],
  ['archive', 'main'],
  ['fork', 'main'],
  ['raw', 'checkpoint'],
  ['recover'],
  ['run', 'another', 'Hello?', '--model', 'script:ANSWERS'],
];

describe('a graph file with', () => {
  test.each(damages)(
    '%s stops no command that writes; it is set aside if it differs',
    async (_what, differs, damage) => {
      using home = homeWithFork();
      writeFileSync(home.file('answers.json'), '[{ "text": "Hello." }]');
      const right = textOf(home);
      for (const argv of writes) {
        if (existsSync(home.graph)) writeFileSync(home.graph, right);
        damage(home);
        const wrong = existsSync(home.graph) ? textOf(home) : undefined;
        const words = argv.map((word) => word.replace('ANSWERS', home.file('answers.json')));
        const { code, stdout, stderr } = await home.here([...words, '--json'], {
          stdin: '{"content":"more"}\n',
        });
        expect({ argv, code }).toEqual({ argv, code: 0 });
        expect((JSON.parse(stdout) as { graph_diverged?: true }).graph_diverged).toBe(
          differs ? true : undefined,
        );
        expect(stdout).not.toContain('graph_lagging');
        const asides = readdirSync(home.path).filter((name) => name.includes('.aside-'));
        if (differs) {
          expect(asides).toEqual([expect.stringMatching(/^session_graph\.jsonl\.aside-[0-9a-f]{8}$/)]);
          expect(readFileSync(home.file(asides[0] ?? ''), 'utf8')).toBe(wrong);
          expect(stderr).toBe(
            `The graph file differed from the database. It is now '${asides[0]}', and a new one was written. See: tape check\n`,
          );
        } else expect([asides, stderr]).toEqual([[], '']);
        for (const name of asides) rmSync(home.file(name));
        // The lines that were there are all there, once.
        expect(
          textOf(home)
            .split('\n')
            .filter((line) => right.split('\n').includes(line)),
        ).toEqual(right.split('\n'));
      }
    },
  );

  test('one line of another home, as text: the command says so on stderr', async () => {
    using home = homeWithFork();
    writeFileSync(home.graph, 'rubbish');
    const { code, stdout, stderr } = await home.here(['archive', 'main', '--quiet']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'main\n' });
    expect(stderr).toMatch(/^The graph file differed from the database\. .*See: tape check\n$/);
  });

  test('other text, in a new home: init says so', async () => {
    using home = tempHome();
    writeFileSync(home.graph, 'rubbish');
    const made = await home.here(['init', '--home', home.path, '--json']);
    expect(json(made)).toMatchObject({ created: true, graph_diverged: true });
    expect(made.stderr).toMatch(/^The graph file differed from the database\. /);
  });

  test('a link in its place: the command leaves it, and says that the file lags', async () => {
    using home = homeWithFork();
    rmSync(home.graph);
    writeFileSync(home.file('victim'), 'mine');
    symlinkSync(home.file('victim'), home.graph);
    const result = await home.here(['new', 'more', '--json']);
    expect(json(result)).toMatchObject({ created: true, graph_lagging: true });
    expect(result.stderr).toBe(
      'The graph file cannot be written now: the next command that writes adds the missing lines\n',
    );
    expect(readFileSync(home.file('victim'), 'utf8')).toBe('mine');
    rmSync(home.graph);
    await home.here(['new', 'more']);
    expect(home.lines().map(({ g }) => g)).toEqual([1, 2, 3]);
  });
});
