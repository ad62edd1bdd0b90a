import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { homeToComplete } from '../support/home-to-complete.ts';
import { tempDir } from '../support/temp-dir.ts';
import type { TempHome } from '../support/temp-home.ts';

async function offered(home: TempHome, ...words: readonly string[]): Promise<readonly string[]> {
  const { stdout, stderr, code } = await home.here(['__complete', ...words]);
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  return stdout === '' ? [] : stdout.trimEnd().split('\n').sort();
}

describe('a shell offers', () => {
  test('verbs', async () => {
    using home = homeToComplete();
    expect(await offered(home, 'sess')).toEqual(['sessions']);
    expect(await offered(home, '')).toEqual(expect.arrayContaining(['log', 'run', 'completion']));
    expect(await offered(home, '--home', home.path, 'lo')).toEqual(['log', 'logs']);
    expect(await offered(home, `--home=${home.path}`, 'show', 'mo')).toEqual(['mom']);
  });

  test('options of the verb that are not given yet, and their values', async () => {
    using home = homeToComplete();
    expect(await offered(home, 'log', 'release', '--one')).toEqual(['--oneline']);
    expect(await offered(home, 'log', '--oneline', '--one')).toEqual([]);
    expect(await offered(home, 'delegate', 'release', '--task', 'x', '--ta')).toContain('--task');
    expect(await offered(home, 'log', '--color', '')).toEqual(['always', 'auto', 'never']);
    expect(await offered(home, 'completion', 'z')).toEqual(['zsh']);
    expect(await offered(home, 'config', 'get', 'limits.max_c')).toEqual(['limits.max_children']);
  });

  test('options for two dashes, and arguments after a whole --', async () => {
    using home = homeToComplete();
    for (const line of [['log', 'release'], ['log'], ['run', 'release', 'Hi'], []])
      expect(await offered(home, ...line, '--')).toEqual(expect.arrayContaining(['--home', '--help']));
    expect(await offered(home, 'log', 'release', '--')).toContain('--oneline');
    expect(await offered(home, '--')).toContain('--version');
    expect(await offered(home, 'log', '--', 'rel')).toEqual(['release', 'release-notes']);
    expect(await offered(home, 'log', '--', '--')).toEqual([]);
    expect(await offered(home, 'run', 'release', '--', '--m')).toEqual([]);
  });

  test('verbs and topics to help', async () => {
    using home = homeToComplete();
    expect(await offered(home, 'hel')).toEqual(['help']);
    expect(await offered(home, 'help', '')).toEqual(expect.arrayContaining(['log', 'points', 'exit-codes']));
    expect(await offered(home, 'help', 'po')).toEqual(['points']);
    expect(await offered(home, 'help', 'mo')).toEqual(['models']);
    expect(await offered(home, 'help', '--')).toEqual(['--all']);
    expect(await offered(home, 'help', 'log', '')).toEqual([]);
  });

  test('what the home has that stands before the verb, as a shell reads it', async () => {
    using home = homeToComplete();
    using user = tempDir();
    symlinkSync(home.path, user.file('a deck'));
    symlinkSync(home.path, user.file('deck'));
    const env = { HOME: user.path, DECKS: user.path, TAPE_HOME: user.file('none') };
    for (const given of [
      home.path,
      '~/deck',
      '$HOME/deck',
      `$${'{DECKS}'}/deck`,
      `'${user.path}/deck'`,
      '~/a\\ deck',
    ])
      for (const line of [
        ['--home', given, 'log', 'mo'],
        ['--color', 'never', '--home', given, '--quiet', 'log', 'mo'],
        ['log', '--home', given, 'mo'],
      ]) {
        const { stdout } = await home.here(['__complete', ...line], { env });
        expect(stdout, line.join(' ')).toBe('mom\n');
      }
    expect(await offered(home, '--home', home.path, '--color', 'al')).toEqual(['always']);
    expect(await offered(home, `--home=${home.path}`, 'log', '')).toHaveLength(3);
    expect(await offered(home, '--home', home.path, 'log', '--one')).toEqual(['--oneline']);
  });

  test('what a home has with a blank in its name, whose quoted words bash splits', async () => {
    using home = homeToComplete();
    using user = tempDir();
    symlinkSync(home.path, user.file('a long deck'));
    const env = { HOME: user.path, TAPE_HOME: user.file('none') };
    const at = user.path;
    for (const given of [
      `"${at}/a long deck"`,
      `'${at}/a long deck'`,
      `${at}/a\\ long\\ deck`,
      `${at}/"a long"\\ d''eck`,
    ])
      for (const line of [`--home ${given} log mo`, `log --home ${given} mo`, `log --home=${given} mo`]) {
        const { stdout } = await home.here(['__complete', ...line.split(' ')], { env });
        expect(stdout, line).toBe('mom\n');
      }
    // The word that is being typed is one of the quotes.
    expect((await home.here(['__complete', 'log', '--home', `"${at}/a`, 'mo'], { env })).stdout).toBe('');
  });

  test('sessions and aliases, where the verb takes one', async () => {
    using home = homeToComplete();
    expect(await offered(home, 'log', 'rel')).toEqual(['release', 'release-notes']);
    expect(await offered(home, 'log', '--kind', 'message', 'dm:')).toEqual(['dm:slack:u1']);
    expect(await offered(home, 'show', 'mo')).toEqual(['mom']);
    expect(await offered(home, 'merge', 'release-notes', '--into', 'rel')).toEqual([
      'release',
      'release-notes',
    ]);
    expect(await offered(home, 'run', 'release', 'rel')).toEqual([]);
    expect(await offered(home, 'log', '')).toHaveLength(3);
  });

  test('anchors behind an @', async () => {
    using home = homeToComplete();
    expect(await offered(home, 'show', 'release@r')).toEqual(['release@ready']);
    expect(await offered(home, 'fork', 'release@')).toEqual([
      'release@done',
      'release@head',
      'release@ready',
      'release@session/start',
    ]);
  });

  test('anchors to options that take a point of the session, and to the end of a range', async () => {
    using home = homeToComplete();
    expect(await offered(home, 'log', 'release', '--since', 're')).toEqual(['ready']);
    expect(await offered(home, 'log', 'release@done', '--until', 'r')).toEqual(['ready']);
    expect(await offered(home, 'fork', 'release', '--since', 'do')).toEqual(['done']);
    for (const line of [['sessions'], ['graph', 'release']])
      expect(await offered(home, ...line, '--since', '')).toEqual([]);
    expect(await offered(home, 'log', 'nobody', '--since', '')).toEqual([]);
    expect(await offered(home, 'log', 'release@ready..d')).toEqual(['release@ready..done']);
  });

  test('nothing without a home, in a damaged one, and for an unknown verb', async () => {
    using home = homeToComplete();
    expect(await offered(home, 'nonsense', 're')).toEqual([]);
    expect(await offered(home, 'log', '--home', '/nowhere', 're')).toEqual([]);
    writeFileSync(home.db, 'no database');
    expect(await offered(home, 'log', 're')).toEqual([]);
  });
});

test('the script is printed for the shell of the user, or written where it looks', async () => {
  using home = homeToComplete();
  using dir = tempDir();
  const env = { HOME: dir.path, SHELL: '/usr/bin/fish' };
  expect((await home.here(['completion'], { env })).stdout).toContain('complete -c tape');
  expect((await home.here(['completion'], { env: { ...env, SHELL: '/bin/tcsh' } })).code).toBe(2);
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { file } = json<{ file: string }>(
      await home.here(['completion', shell, '--install', '--json'], { env }),
    );
    expect(file.startsWith(dir.path)).toBe(true);
    expect(readFileSync(file, 'utf8')).toBe((await home.here(['completion', shell], { env })).stdout);
  }
});
