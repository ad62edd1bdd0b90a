import { writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { jsonError } from '../support/cli.ts';
import { entryLines } from '../support/scripted.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** A session `main` that speaks of the dark mode, and a script that answers twenty messages. */
function withMain(): TempHome {
  const home = tempHome();
  home.session('main', user('The dark mode is too light'), assistant('A dark room, mode unknown - so what?'));
  writeFileSync(
    home.file('answers.json'),
    JSON.stringify(Array.from({ length: 20 }, () => ({ text: 'Yes.' }))),
  );
  return home;
}

const found = (lines: string) => lines.split('\n').filter((line) => line !== '');

test.each([
  [['dark', 'mode'], ['main@2']],
  [['dark mode'], ['main@2']],
  [['dark', '-n', '5', 'mode'], ['main@2']],
  [['--session', 'main', 'dark', '--all', 'mode'], ['main@2']],
  [['mode', 'dark'], []],
  [['unknown', '-', 'so', 'what?'], ['main@3']],
  [['is', 'too', 'light', '--kind', 'message'], ['main@2']],
  [['--all', 'true'], []],
])('tape search %j looks for all its words', async (args, hits) => {
  using home = withMain();
  const result = await home.here(['search', '--quiet', ...args]);
  expect(result).toMatchObject({ code: 0, stderr: '' });
  expect(found(result.stdout)).toEqual(hits);
});

test.each([
  [['fix', 'the', 'test'], 'fix the test'],
  [['fix  the test'], 'fix  the test'],
  [['fix', '-', 'now'], 'fix - now'],
  [['is', 'this', 'true', '--quiet', 'or', 'false'], 'is this true or false'],
  [['ask', '@anna', 'about', '@file.ts'], 'ask @anna about @file.ts'],
  [['@@anna', 'asks'], '@anna asks'],
  [['1', '+', '1.50', '=', '07'], '1 + 1.50 = 07'],
  [['run', 'help', 'log'], 'run help log'],
  [['--', '-v', 'is', '--broken'], '-v is --broken'],
])('tape run and tape send read the words %j as one message', async (words, message) => {
  using home = withMain();
  const model = ['--model', `script:${home.file('answers.json')}`];
  for (const verb of ['run', 'send'])
    expect(await home.here([verb, 'main', ...model, ...words])).toMatchObject({ code: 0 });
  using store = home.open();
  const said = entryLines(store.entries.read('main')).filter((line) => line.startsWith('user: '));
  expect(said.slice(1)).toEqual([`user: ${message}`, `user: ${message}`]);
});

test.each([
  [['-', 'now'], "cannot read '-' as stdin: more words follow", 'quote all of it'],
  [['@anna', 'asks'], "cannot read '@anna' as a file: more words follow", 'write @@anna'],
  [['fix', '--force'], 'cannot use --force: no such option', 'write -- before it'],
])(
  'tape run and tape send refuse the words %j, which may mean something else',
  async (words, message, hint) => {
    using home = withMain();
    const before = home.contents();
    for (const verb of ['run', 'send']) {
      const args = [verb, 'main', '--json', '--model', `script:${home.file('answers.json')}`, ...words];
      const result = await home.here(args, { stdin: 'from stdin' });
      expect(result.code).toBe(2);
      expect(jsonError(result).message).toContain(message);
      expect(jsonError(result).hint).toContain(hint);
    }
    expect(home.contents()).toEqual(before);
  },
);

test('one word still means stdin or a file, and none continues the session', async () => {
  using home = withMain();
  const model = ['--model', `script:${home.file('answers.json')}`];
  writeFileSync(home.file('task.md'), 'From a file\n');
  expect((await home.here(['send', 'main', '-', ...model], { stdin: 'From stdin\n' })).code).toBe(0);
  expect((await home.here(['send', 'main', `@${home.file('task.md')}`, ...model])).code).toBe(0);
  expect((await home.here(['run', 'main', ...model])).stderr).toContain('nothing');
  using store = home.open();
  const said = entryLines(store.entries.read('main')).filter((line) => line.startsWith('user: '));
  expect(said.slice(1)).toEqual(['user: From stdin', 'user: From a file']);
});
