import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { jsonLines, tapeHere } from '../support/cli.ts';
import { tapeProgram } from '../support/programs.ts';
import { onTerminal, skipsTerminals } from '../support/pty.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const esc = '\u001b';
const link = new RegExp(`${esc}\\]8;;([^${esc}]+)${esc}\\\\((?:${esc}\\[[0-9;]*m)?[^${esc}]*)`, 'g');
const terminal = { isTerminal: true, env: { TERM: 'xterm-256color', TERM_PROGRAM: 'ghostty' } } as const;

/** `main` with a merged and an open child, each with a file of its own. */
function withChildren(): TempHome {
  const home = tempHome();
  home.session('main', user('Plan'), assistant('Planned.'));
  using store = home.open();
  store.lineage.fork('main', { name: 'one' });
  store.entries.append('one', [assistant('Done.')]);
  store.lineage.merge('one');
  store.lineage.fork('main', { name: 'two' });
  for (const name of ['main', 'one', 'two']) {
    const id = store.sessions.find(name)?.id ?? '';
    mkdirSync(home.file(`logs/${id}`), { recursive: true });
    writeFileSync(home.file(`logs/${id}/raw.jsonl`), '');
  }
  return home;
}

/** The links of a text: addresses by what a reader sees. */
const linksIn = (text: string): Map<string, string> =>
  new Map(
    Array.from(text.matchAll(link), ([, address = '', name = '']) => [
      name.replace(`${esc}[1m`, ''),
      address,
    ]),
  );

const listings = [
  ['sessions', ['main', 'one', 'two']],
  ['sessions --tree', ['main', 'one', 'two']],
  ['overview', ['main', 'one', 'two']],
  ['children main', ['one', 'two']],
  ['graph', ['main', 'one', 'two']],
  ['graph --format tree', ['main', 'one', 'two']],
  ['lineage one', ['main', 'one']],
  ['log main', ['one', 'two']],
  ['log main --graph', ['main', 'one', 'two']],
] as const;

test.each(listings)('%s links the names of sessions on a terminal that has links', async (line, names) => {
  using home = withChildren();
  const { stdout } = await home.here(line.split(' '), terminal);
  const links = linksIn(stdout);
  expect([...links.keys()].sort()).toEqual([...names].sort());
  for (const name of names) {
    const address = new URL(links.get(name) ?? '');
    address.hostname = '';
    expect(existsSync(fileURLToPath(address))).toBe(true);
  }
});

test('a name leads to the worktree of its session, else to its raw traffic; without files of its own it is no link', async () => {
  using home = withChildren();
  using store = home.open();
  const idOf = (name: string) => store.sessions.find(name)?.id;
  store.sessions.open('plain');
  const worktree = `worktrees/${idOf('two')}`;
  mkdirSync(home.file(worktree), { recursive: true });
  const links = linksIn((await home.here(['sessions'], terminal)).stdout);
  expect(links.get('two')?.endsWith(`${home.path}/${worktree}`)).toBe(true);
  expect(links.get('one')?.endsWith(`${home.path}/logs/${idOf('one')}/raw.jsonl`)).toBe(true);
  expect([...links.keys()].sort()).toEqual(['main', 'one', 'two']);
  // No two lead to the same place.
  expect(new Set(links.values()).size).toBe(3);
});

test.each([
  [{ TERM_PROGRAM: 'iTerm.app', TERM_PROGRAM_VERSION: '3.4.23' }, true],
  [{ TERM_PROGRAM: 'iTerm.app', TERM_PROGRAM_VERSION: '3.0.15' }, false],
  [{ TERM_PROGRAM: 'WezTerm', TERM_PROGRAM_VERSION: '20240203-110809-5046fc22' }, true],
  [{ TERM_PROGRAM: 'vscode', TERM_PROGRAM_VERSION: '1.106.0' }, true],
  [{ TERM_PROGRAM: 'tmux', TERM_PROGRAM_VERSION: '3.4', TERM: 'tmux-256color' }, true],
  [{ TERM_PROGRAM: 'tmux', TERM_PROGRAM_VERSION: '3.3a', TERM: 'tmux-256color' }, false],
  [{ VTE_VERSION: '7600' }, true],
  [{ VTE_VERSION: '5000' }, false],
  [{ VTE_VERSION: '7600', TERM: 'screen-256color' }, false],
  [{ KONSOLE_VERSION: '230800' }, true],
  [{ WT_SESSION: 'a-b' }, true],
  [{ TERM: 'xterm-kitty' }, true],
  [{ TERM_PROGRAM: 'Apple_Terminal' }, false],
  [{ TERM_PROGRAM: 'constructor' }, false],
  [{ FORCE_HYPERLINK: '1' }, true],
  [{ TERM: 'xterm-kitty', FORCE_HYPERLINK: '0' }, false],
  [{ TERM: 'xterm-kitty', NO_COLOR: '1' }, false],
  [{ TERM: 'dumb', VTE_VERSION: '7600' }, false],
])('whether there are links on a terminal with %j: %s', async (env, expected) => {
  using home = withChildren();
  const { stdout } = await home.here(['sessions'], { isTerminal: true, env: { TERM: 'xterm', ...env } });
  expect(stdout.includes(`${esc}]8;;`)).toBe(expected);
});

test('a pipe gets no link, and neither does a program that reads JSON', async () => {
  using home = withChildren();
  const env = { ...terminal.env, FORCE_HYPERLINK: '1' };
  for (const [line] of listings)
    for (const more of [[], ['--color', 'always']]) {
      const { stdout, stderr } = await home.here([...line.split(' '), ...more], { env });
      expect(stdout + stderr).not.toContain(`${esc}]`);
    }
  for (const more of [['--json'], ['--quiet'], ['--color', 'never']])
    expect((await home.here(['sessions', ...more], { isTerminal: true, env })).stdout).not.toContain(esc);
});

test('links fill no columns, and a home with a strange name stays within its links', async () => {
  using dir = tempDir();
  const home = dir.file(`a b\u0007;${esc}]8;;http:x${esc}\\`);
  const say = { home, stdin: '{"role":"user","content":"Hi"}\n' };
  for (const name of ['main', 'other']) await tapeHere(['append', name], say);
  for (const { id } of jsonLines(await tapeHere(['sessions', '--jsonl'], { home })))
    mkdirSync(join(home, 'worktrees', String(id)), { recursive: true });
  const shown = async (env: Readonly<Record<string, string>>) =>
    (await tapeHere(['sessions'], { home, isTerminal: true, env: { TERM: 'xterm', ...env } })).stdout;
  const linked = await shown(terminal.env);
  const sequences = linked.match(new RegExp(`${esc}\\]8;;[!-~]*?${esc}\\\\`, 'g')) ?? [];
  // One for each session, and the end of each.
  expect(sequences).toHaveLength(4);
  const plain = sequences.reduce((text, one) => text.replace(one, ''), linked);
  expect(plain).toBe(await shown({}));
});

const atFullSize = sized<(name: string, act: () => Promise<void>) => void>(
  () => {},
  test.skipIf(skipsTerminals('links in a pager')),
  test.skipIf(skipsTerminals('links in a pager')),
);

atFullSize('less passes links on, and another pager gets none', async () => {
  using home = tempHome();
  {
    using store = home.open();
    for (let i = 0; i < 40; i += 1) {
      const { id } = store.sessions.open(`session-${i}`);
      mkdirSync(home.file(`worktrees/${id}`), { recursive: true });
    }
  }
  const shown = async (pager: string) => {
    const { output } = await onTerminal({
      argv: [process.execPath, tapeProgram, 'sessions'],
      env: {
        PATH: process.env.PATH ?? '',
        TAPE_HOME: home.path,
        TAPE_TRUST_HOME: '1',
        TAPE_PAGER: pager,
        FORCE_HYPERLINK: '1',
      },
      rows: 12,
      steps: pager.startsWith('less') ? [{ until: 'session-3' }, { type: 'q' }] : [],
    });
    return output;
  };
  const isNew = Number(/^less (\d+)/.exec(execFileSync('less', ['--version']).toString())?.[1]) >= 566;
  expect((await shown('less -RX')).includes(`${esc}]8;;file://`)).toBe(isNew);
  const other = await shown('sed s/session/shown/');
  expect(other).toContain('shown-0');
  expect(other).toContain(`${esc}[1m`);
  expect(other).not.toContain(`${esc}]8`);
});
