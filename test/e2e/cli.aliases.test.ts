import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { allVerbs, nameOf, splitWords } from '@tapedeck/cli/internal';
import { user } from '@tapedeck/tape';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonError, jsonLines } from '../support/cli.ts';
import { assertParsersAgree } from '../support/parsers.ts';
import { type Project, project } from '../support/project.ts';
import { atFullSize } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** A home with a session and these aliases. */
function withAliases(aliases: Readonly<Record<string, string>>): TempHome {
  const home = tempHome();
  home.session('main', user('Hello, mate'));
  writeFileSync(home.file('config.yaml'), `alias: ${JSON.stringify(aliases)}\n`);
  return home;
}

/** What two command lines print, which is the same. */
async function expectSame(home: TempHome, line: readonly string[], other: readonly string[]): Promise<void> {
  const now = () => 1_800_000_000_000;
  const [a, b] = [await home.here(line, { now }), await home.here(other, { now })];
  expect([line, a.code]).toEqual([line, 0]);
  expect(a).toEqual(b);
}

describe('an alias of a verb', () => {
  test('runs the verb with its options, and those of the line', async () => {
    using home = withAliases({
      lg: 'log --oneline',
      find: `search  --kind 'message'`,
      seen: 'log --grep "Hello, mate"',
      raw: 'show',
      odd: 'log -- ',
    });
    await expectSame(home, ['lg', 'main'], ['log', '--oneline', 'main']);
    await expectSame(home, ['lg', '-n', '1', 'main'], ['log', '--oneline', '-n', '1', 'main']);
    await expectSame(
      home,
      ['--color', 'never', 'lg', 'main'],
      ['--color', 'never', 'log', '--oneline', 'main'],
    );
    await expectSame(home, ['find', 'Hello', '--jsonl'], ['search', '--kind', 'message', 'Hello', '--jsonl']);
    await expectSame(home, ['seen', 'main'], ['log', '--grep', 'Hello, mate', 'main']);
    await expectSame(home, ['odd', 'main'], ['log', 'main']);
    await expectSame(
      home,
      ['lg', 'main', '--format', '{seq}'],
      ['log', '--oneline', 'main', '--format', '{seq}'],
    );
    using other = withAliases({ lg: 'log --all' });
    const at = ['--home', other.path];
    await expectSame(home, [...at, 'lg', 'main'], [...at, 'log', '--all', 'main']);
    const none = await home.here(['lg', 'none', '--json']);
    expect(jsonError(none)).toMatchObject({ code: 'TAPE_NO_SESSION' });
    expect((await home.here(['lg', 'main', '--onelin'])).stderr).toContain('see: tape log --help');
  });

  test('never hides a verb, and costs its line nothing', async () => {
    using home = withAliases({ log: 'show', help: 'log' });
    await expectSame(home, ['log', 'main'], ['log', 'main']);
    expect((await home.here(['help'])).stdout).not.toContain('Aliases');
    // A file that no reader could use is not read.
    writeFileSync(home.file('config.yaml'), 'alias: [');
    for (const line of [['log', 'main'], ['ls'], ['help'], ['log', '--help'], ['--version']])
      expect([line, (await home.here(line)).code]).toEqual([line, 0]);
    expect(await home.here(['lg', 'main'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('config.yaml'),
    });
  });

  test('both parsers read the lines that aliases stand for alike', async () => {
    for (const text of [
      `log --grep 'a b' --oneline`,
      'run --model script:x.json',
      'status --all',
      'log -n 3',
    ]) {
      const words = splitWords(text);
      if (typeof words === 'string') throw new Error(words);
      await assertParsersAgree([...words, 'main']);
    }
  });

  test('is refused where it stands for no verb, for an alias, or for a shell', async () => {
    using p = project();
    const set = async (name: string, text: string) =>
      await p.here(['config', 'set', '--json', '--', `alias.${name}`, text]);
    expect((await set('lg', 'log --graph')).code).toBe(0);
    const noShell = 'that is not quoted, and an alias runs no shell';
    for (const [name, text, why] of [
      ['log', 'show', 'log is a verb, which no alias can hide'],
      ['ls', 'show', 'ls is a verb, which no alias can hide'],
      ['help', 'show', 'help is a verb, which no alias can hide'],
      ['x', 'lg main', "'lg' is an alias, and an alias stands for a verb"],
      ['x', 'x main', "'x' is an alias, and an alias stands for a verb"],
      ['x', 'lgo', "it must begin with a verb, and 'lgo' is not a verb"],
      ['x', '!rm -rf .', "it must begin with a verb, and '!rm' is not a verb"],
      ['x', '--home y log', "it must begin with a verb, and '--home' is not a verb"],
      ['x', '', 'it is empty'],
      ['x', ' ', 'it is empty'],
      ['x', "log 'a", "a quote (') is not closed"],
      ['x', 'log "a', 'a quote (") is not closed'],
      ['x', 'log \\', 'it ends with a backslash'],
      ['x', 'log main | less', `it has a | ${noShell}`],
      ['x', 'log $NAME', `it has a $ ${noShell}`],
      ['x', 'log "$(id)"', `it has a $ ${noShell}`],
      ['x', 'log `id`', `it has a \` ${noShell}`],
      ['x', 'backup ~/a.db', `it has a ~ ${noShell}`],
      ['x y', 'log', 'its name must be letters, digits, - and _, and begin with a letter'],
      ['__proto__', 'log', 'its name must be letters, digits, - and _, and begin with a letter'],
      ['-x', 'log', 'its name must be letters, digits, - and _, and begin with a letter'],
    ]) {
      const error = jsonError(await set(name ?? '', text ?? ''));
      expect([name, text, error.message]).toEqual([name, text, `cannot set alias.${name}: ${why}`]);
    }
    expect(readFileSync(join(p.home, 'config.yaml'), 'utf8')).toBe('alias:\n  lg: log --graph\n');
    // A file that an editor wrote can have them.
    p.write('.tape/config.yaml', 'alias: { lg: log, x: lg main, y: "log | less", z: "", w: wait w }\n');
    for (const name of ['x', 'y', 'z'])
      expect((await p.here([name])).stderr).toMatch(
        new RegExp(`^Error: cannot run the alias ${name}: it|'lg' is`),
      );
    p.write('.tape/config.yaml', 'alias: { lg: [log] }\n');
    expect((await p.here(['run', 'main', 'x'])).stderr).toContain(
      'line 1: alias must be a mapping of names to texts',
    );
  });

  test('has a help, is listed in it, and is suggested', async () => {
    using home = withAliases({ lg: `"log" --grep 'a  b'`, recent: 'sessions -n 5' });
    for (const line of [
      ['lg', '--help'],
      ['help', 'lg'],
      ['--quiet', 'lg', '-h'],
    ]) {
      const { stdout } = await home.here(line);
      expect(stdout.startsWith('tape lg stands for tape "log" --grep \'a b\'.\n\ntape log [place]')).toBe(
        true,
      );
    }
    const front = (await home.here(['help'])).stdout;
    expect(front).toMatch(/^Aliases lg recent$/m);
    expect(front.trimEnd().split('\n').length).toBeLessThanOrEqual(31);
    expect((await home.here(['help', '--all'])).stdout).toMatch(
      /^Aliases:\n {2}lg +"log" --grep 'a b'\n {2}recent +sessions -n 5$/m,
    );
    expect((await home.here(['recnet'])).stderr).toContain('no such verb; did you mean recent?');
    expect((await home.here(['help', 'rece'])).stderr).toContain(
      'no such verb or topic; did you mean recent?',
    );
  });

  test('is completed, and completes as its verb', async () => {
    using home = withAliases({ lg: 'log --oneline', f: 'fork --from' });
    const offered = async (...words: readonly string[]) => {
      const { stdout, stderr, code } = await home.here(['__complete', ...words]);
      expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
      return stdout.split('\n').filter((line) => line !== '');
    };
    expect(await offered('l')).toEqual(
      ['log', 'logs', 'lineage', 'link', 'ls', 'lg'].toSorted((a, b) =>
        a === 'lg' ? 1 : b === 'lg' ? -1 : 0,
      ),
    );
    expect(await offered('lg', 'ma')).toEqual(['main']);
    expect(await offered('lg', 'main', '--one')).toEqual([]);
    expect(await offered('lg', 'main', '--gre')).toEqual(['--grep']);
    expect(await offered('--home', home.path, 'lg', 'main@')).toContain('main@head');
    expect(await offered('nonsense', 'ma')).toEqual([]);
  });

  test.runIf(atFullSize)('of a model verb loads the configuration of the project', async () => {
    using p = project();
    p.write('answers.json', [{ text: 'Hi.' }]);
    p.write(
      'tape.config.mts',
      `import { defineDeck } from '@tapedeck/runtime';\nexport default defineDeck({ model: 'script:answers.json' });`,
    );
    await p.here(['trust', '.']);
    await p.here(['config', 'set', 'alias.ask', 'run main']);
    expect(await p.process(['ask', 'Hello'])).toMatchObject({ code: 0, stdout: 'Hi.\n' });
  });
});

test.runIf(atFullSize)(
  'an alias of another user is not run, shown or completed until this user sets it',
  async () => {
    using p = project();
    const env = { env: { TAPE_TRUST_HOME: '', HOME: dirname(p.path) } };
    const here = async (...args: readonly string[]) => await p.here(args, env);
    await here('new', 'main');
    copyFileSync(join(p.home, 'tape.db'), p.file('copy.db'));
    renameSync(p.file('copy.db'), join(p.home, 'tape.db'));
    p.write('.tape/config.yaml', 'alias: { lg: log --oneline, go: run --model script:evil.json }\n');
    const refused = async (name: string) => jsonError(await here(name, 'main', '--json'));
    const isRefused = { code: 'CLI_FOREIGN_HOME', hint: expect.stringContaining('tape config set alias.lg') };
    expect(await refused('lg')).toMatchObject(isRefused);
    expect((await here('config', 'set', 'alias.lg', 'log')).stderr).toContain('tape trust');
    await here('trust', '.tape');
    expect(await refused('lg')).toMatchObject(isRefused);
    expect((await here('help')).stdout).not.toContain('Aliases');
    expect((await here('__complete', 'lg', 'ma')).stdout).toBe('');
    expect((await here('config')).stderr).toContain('Ignored alias.lg, alias.go of');
    expect((await here('config', 'set', 'alias.lg', 'log --oneline')).stderr).toContain('with alias.go');
    await here('config', 'unset', 'alias.go');
    expect(await refused('lg')).toMatchObject(isRefused);
    const set = await here('config', 'set', 'alias.lg', 'log --oneline');
    expect(set).toMatchObject({ code: 0 });
    expect((await here('lg', 'main')).code).toBe(0);
  },
);

test('words of an alias are those of a shell', async () => {
  for (const [text, words] of [
    [`a b`, ['a', 'b']],
    [` a\t\n b `, ['a', 'b']],
    [`'a b' "c d" e\\ f`, ['a b', 'c d', 'e f']],
    [`a'b'"c"\\d`, ['abcd']],
    [`'' ""`, ['', '']],
    [`"a\\"b\\\\c\\d"`, ['a"b\\c\\d']],
    [`'$x | ~' '~'`, ['$x | ~', '~']],
    [`a~b x=~`, ['a~b', 'x=~']],
    ['@{-1} {a}*?', ['@{-1}', '{a}*?']],
  ] as const)
    expect([text, splitWords(text)]).toEqual([text, words]);
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), (words) => {
      const text = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
      expect(splitWords(text)).toEqual(words);
    }),
  );
});

test('every verb can have an alias, and all can be set at once', async () => {
  using p: Project = project();
  const all = (await allVerbs()).map((verb) => [`my-${nameOf(verb)}`, nameOf(verb)]);
  expect((await p.here(['config', 'set', 'alias', JSON.stringify(Object.fromEntries(all))])).code).toBe(0);
  const listed = jsonLines<{ key: string }>(await p.here(['config', 'list', 'alias', '--jsonl']));
  expect(listed.length).toBe(all.length);
});
