import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { tempHome } from '../support/temp-home.ts';

// What workers do with a home on a server: cli.worker.

/** What a command line that is refused says, and what it proposes. */
async function refused(line: string): Promise<readonly string[]> {
  using home = tempHome();
  home.session('main');
  const { code, stdout, stderr } = await home.here(line.split(' '));
  expect({ code, stdout }, line).toEqual({ code: 2, stdout: '' });
  return stderr.replaceAll(home.path, 'HOME').trimEnd().split('\n');
}

test('workers are for homes on a server: another home is refused with the way to one', async () => {
  const hint =
    'Hint: copy it with: tape copy HOME postgres://HOST/DATABASE; and name that with --home or TAPE_HOME';
  const why = "the tapes of 'HOME' are in a file, and workers need a home on a server";
  for (const line of ['worker', 'worker --health', 'worker --concurrency 2'])
    expect(await refused(line)).toEqual([`Error: cannot run a worker: ${why}`, hint]);
  for (const line of ['delegate main --task Look', 'run main Look', 'recover main', 'send main Look'])
    expect(await refused(`${line} --engine pg-boss --model script:none`)).toEqual([
      `Error: cannot use --engine pg-boss: ${why}`,
      hint,
    ]);
});

test('what has no effect where workers run the children is refused', async () => {
  expect(await refused('delegate main --task Look --background')).toEqual([
    'Error: cannot leave the children in the background: they run in this process',
    'Hint: let workers run them: --engine pg-boss',
  ]);
  expect(await refused('delegate main --task Look --background --engine pg-boss --order spawn')).toEqual([
    expect.stringContaining('--order spawn'),
    expect.stringContaining('tape delegate --help'),
  ]);
  expect(await refused('delegate main --task Look --engine pg-boss --yes')).toEqual([
    'Error: cannot use --yes with --engine pg-boss: the workers ask and approve',
    'Hint: start them with: tape worker --yes',
  ]);
  expect(await refused('delegate main --task Look --engine pg-boss --workspace worktree')).toEqual([
    expect.stringContaining(
      'cannot use --workspace worktree with --engine pg-boss: it is of a repository here',
    ),
    'Hint: leave out --engine to run the children in this process',
  ]);
  expect((await refused('delegate main --task Look --engine redis'))[0]).toMatch(/embedded.*pg-boss/);
});

test('--engine embedded is what a command does without', async () => {
  using home = tempHome();
  home.session('main');
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'Done.' }]));
  const model = `script:${home.file('answers.json')}`;
  const done = await home.here([
    'delegate',
    'main',
    '--task',
    'A',
    '--engine',
    'embedded',
    '--model',
    model,
    '--json',
  ]);
  expect(json(done)).toMatchObject({ children: [{ status: 'completed', merged: true, text: 'Done.' }] });
});
