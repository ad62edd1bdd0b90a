import { writeFileSync } from 'node:fs';
import { user } from '@tapedeck/tape';
import { beforeAll, describe, expect, test } from 'vitest';
import { showing } from '../support/long-verbs.ts';
import { toSchema0 } from '../support/old-schemas.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** Verbs that read a home, with the part that each shows, and its percents. */
const reading: readonly (readonly [line: readonly string[], part: string, percents: readonly string[]])[] = [
  [['verify'], 'Verifying entries', ['62', '100']],
  [['verify', 'main'], 'Verifying entries', ['66', '100']],
  [['audit'], 'Examining sessions', ['90']],
  [['check'], 'Examining sessions', ['90']],
  [['doctor'], 'Verifying entries', ['62']],
  [['verify'], 'Comparing lines of the graph file', ['90']],
  [['attest'], 'Reading sessions', ['50', '100']],
  [['graph', '--all'], 'Comparing lines of the graph file', ['90']],
  [['search', '--all', 'Line 2 499'], 'Indexing entries', ['31', '62', '93']],
];

/** Those that write files, sessions or a home, with what each shows, and the home in which it runs. */
const writing: readonly (readonly [line: string, shown: readonly string[], from?: string])[] = [
  ['backup FILE.db', ['Copying pages: ', 'Verifying entries: 62 %']],
  ['restore FIRST.db DIR', ['Copying pages: ', 'Verifying entries: 62 %', 'Examining sessions: 90 %']],
  ['export main -o FILE.tape', ['Exporting entries: 66 %']],
  [
    'import FIRST.tape --as bundled',
    ['Reading bytes: ', 'Adding entries: 66 %', 'Verifying entries: 66 %'],
    'other',
  ],
  ['import CLAUDE --as NAME', ['Reading bytes: ', 'Adding entries: 41 %'], 'other'],
  ['import --forget CLAUDE', ['Looking for copies …', 'Erasing, and writing the file anew …'], 'other'],
  ['append NAME', ['Reading lines: 1000', 'Reading lines: 2000'], 'other'],
  ['copy HERE OTHER', ['Copying sessions: ']],
  ['export main --format ui-message -o FILE.json', ['Exporting parts: 100']],
  ['export main --format session-jsonl -o FILE', ['Exporting parts: 100']],
  ['logs main -o FILE.logs', ['Writing entries of main: 66 %']],
  ['redact LARGE@2 --reason private', ['Erasing, and writing the file anew …'], 'other'],
  ['purge LARGE', ['Erasing, and writing the file anew …'], 'other'],
  ['raw checkpoint', ['Writing the WAL back into tape.db …'], 'other'],
  ['UPGRADE new made', ['Upgrading sessions: 0 % of 2'], 'old'],
];

test('these are all verbs that show how far they are', () => {
  const shown = [...reading.map(([[verb]]) => verb), ...writing.map(([line]) => line.split(' ')[0])];
  // Those of remotes need another home, and what they show is that of bundles.
  const others = ['clone', 'pull', 'push'];
  expect(new Set([...shown.filter((verb) => verb !== 'UPGRADE'), ...others])).toEqual(new Set(showing));
});

describe('a long command', () => {
  const home = tempHome();
  beforeAll(() => {
    {
      using store = home.open();
      for (let n = 0; n < 110; n += 1) store.sessions.open(`s${n}`);
      store.sessions.open('main');
      for (let n = 0; n < 3; n += 1)
        store.entries.append(
          'main',
          Array.from({ length: 500 }, (_, i) => user(`Line ${n} ${i}`)),
        );
    }
    return () => home[Symbol.dispose]();
  });

  test.each(reading)(
    '%j shows how far it is, in one line of the terminal, and removes it',
    async (args, part, percents) => {
      const { code, stdout, stderr } = await home.here(args, { isTerminal: true });
      expect(code).toBe(0);
      for (const percent of percents) expect(stderr).toContain(`\r${part}: ${percent} % of `);
      expect(stderr).not.toContain('\n');
      expect(stderr.endsWith('\r\u001b[K')).toBe(true);
      expect(stdout).not.toContain('\r');
      expect(await home.here([...args, '--quiet'], { isTerminal: true })).toMatchObject({ stderr: '' });
      expect(await home.here(args)).toMatchObject({ stderr: '' });
    },
  );

  test('so do those that write files and sessions, at a terminal alone', async () => {
    using other = tempHome();
    for (const name of ['large-0', 'large-1']) other.session(name, user('x'.repeat(3_000_000)));
    const lines = '{"content":"Hi"}\n'.repeat(2_500);
    const record = {
      type: 'user',
      parentUuid: null,
      sessionId: 's1',
      message: { role: 'user', content: 'Why? '.repeat(100) },
    };
    const transcript = Array.from({ length: 1_200 }, (_, i) => {
      const timestamp = '2026-11-16T09:00:00.000Z';
      return `${JSON.stringify({ ...record, uuid: `u${i}`, parentUuid: i === 0 ? null : `u${i - 1}`, timestamp })}\n`;
    });
    writeFileSync(other.file('claude.jsonl'), transcript.join(''));
    for (const [i, isTerminal] of [true, false].entries())
      for (const [line, shown, from] of writing) {
        const args = line
          .replace('HERE', home.path)
          .replace('OTHER', other.file(`copy-${i}`))
          .replace('UPGRADE ', '')
          .replace('LARGE', `large-${i}`)
          .replace('FILE', other.file(`written-${i}`))
          .replace('FIRST', other.file('written-0'))
          .replace('DIR', other.file(`home-${i}`))
          .replace('CLAUDE', other.file('claude.jsonl'))
          .replace('NAME', `s${i}-${line.length}`);
        using old = tempHome();
        if (from === 'old') outdate(old);
        const at = { other, old }[String(from)] ?? home;
        const { code, stderr } = await at.here(args.split(' '), { stdin: lines, isTerminal });
        expect(code, stderr).toBe(0);
        if (isTerminal) for (const part of shown) expect(stderr, line).toContain(`\r${part}`);
        else expect(stderr, line).not.toContain('\r');
      }
  });
});

/** Makes the home one of an older schema. */
function outdate(home: TempHome): void {
  for (const name of ['main', 'more']) home.session(name, user('One'));
  toSchema0(home.db);
}

test('check --fix completes the index that a search has begun, and doctor --fix too', async () => {
  for (const verb of ['check', 'doctor']) {
    using home = tempHome();
    home.session('main', user('first'));
    expect((await home.here([verb, '--fix'])).stdout).not.toContain('indexed');
    expect((await home.here(['search', 'first', '--quiet'])).stdout).toBe('main@2\n');
    home.session('more', user('second'));
    expect((await home.here([verb, '--fix'])).stdout).toContain('fixed: indexed 2 entries for search\n');
    expect((await home.here([verb, '--fix'])).stdout).not.toContain('indexed');
  }
});

// On a push tape.search.test.ts does: it takes entries of forty megabytes.
test.runIf(sized(false, true, true))(
  'a search that leaves entries out says how many, and with --all searches them',
  async () => {
    using home = tempHome();
    {
      using store = home.open();
      store.sessions.open('main');
      for (let n = 0; n < 40; n += 1)
        store.entries.append('main', [user(`special ${n} ${'. '.repeat(500_000)}`)]);
    }
    const first = await home.here(['search', 'special', '-n', '100']);
    const [, count = '', left = ''] =
      /^Did not search (\d+) entries: (they are not indexed yet)\nHint: search everything with: tape search --all -- special\n$/.exec(
        first.stderr,
      ) ?? [];
    expect([first.code, Number(count) > 0, left]).toEqual([0, true, 'they are not indexed yet']);
    expect(first.stdout.split('\n').length - 1 + Number(count)).toBe(40);
    const dots = await home.here(['search', '. . .', '-n', '100', '--json']);
    expect(JSON.parse(dots.stdout)).toMatchObject({
      unsearched: expect.any(Number),
      unindexed: expect.any(Number),
    });
    expect(dots.stderr).toContain("tape search --all -- '. . .'");
    const all = await home.here(['search', 'special', '--all', '-n', '100', '--json']);
    expect(all.stderr).toBe('');
    expect(JSON.parse(all.stdout)).toMatchObject({ unsearched: 0, unindexed: 0 });
    expect(JSON.parse(all.stdout).hits.length).toBe(40);
  },
);
