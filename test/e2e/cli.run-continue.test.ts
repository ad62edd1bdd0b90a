import { writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const place = (cwd: string) => ({ place: { cwd, host: 'h' } });

/** A home with sessions of some directories, the one with the newest message last, and a script for a model. */
function homeOfProjects(): { home: TempHome; model: string } & Disposable {
  const home = tempHome();
  home.session('old', user('Hi', place('/srv/project')), assistant('Hi.'));
  home.session('newest', user('Hi', place('/srv/project/deep')), assistant('Hi.'));
  home.session('other', user('Hi', place('/srv/other')), assistant('Hi.'));
  {
    using store = home.open();
    store.lineage.fork('newest', { name: 'child', inherit: 'nothing' });
    store.entries.append('child', [user('Go', place('/srv/project'))]);
  }
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'One.' }, { text: 'Two.' }]));
  return {
    home,
    model: `script:${home.file('answers.json')}`,
    [Symbol.dispose]: () => home[Symbol.dispose](),
  };
}

test('--continue runs the session that --here lists first, of those that are no children', async () => {
  using at = homeOfProjects();
  const { home, model } = at;
  const cwd = '/srv/project';
  const run = ['run', '--continue', '--model', model];
  const first = await home.here([...run, 'And', 'the tests?', '--json'], { cwd });
  expect(json(first)).toMatchObject({ session: 'newest', text: 'One.' });
  expect(first.stderr).toContain('Continuing newest\n');
  const said = await home.here(['log', 'newest', '--role', 'user', '--oneline'], { cwd });
  expect(said.stdout).toContain('And the tests?');
  // Without a prompt it continues what is unfinished: nothing is.
  const nothing = await home.here([...run, '--json'], { cwd });
  expect([nothing.code, json(nothing)]).toMatchObject([0, { session: 'newest' }]);
  expect((await home.here(['run', '--continue', '--attach'], { cwd })).code).toBe(0);
});

test('--continue takes neither an archived session nor one of another directory, and needs one', async () => {
  using at = homeOfProjects();
  const { home, model } = at;
  const run = ['run', '--continue', '--model', model, 'Go on', '--json'];
  await home.here(['archive', 'newest']);
  expect(json(await home.here(run, { cwd: '/srv/project' }))).toMatchObject({ session: 'old' });
  const before = home.contents();
  const none = await home.here(run, { cwd: '/srv/pro' });
  expect([none.code, jsonError(none)]).toMatchObject([
    3,
    {
      code: 'CLI_NOT_FOUND',
      message: "cannot continue: no session began to run in '/srv/pro' or below it",
    },
  ]);
  for (const args of [['run'], ['run', '--continue', '--new', 'x']])
    expect((await home.here([...args, '--json'], { cwd: '/srv/project' })).code, args.join(' ')).toBe(2);
  expect(home.contents()).toEqual(before);
});
