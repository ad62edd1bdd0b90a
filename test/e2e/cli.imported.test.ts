import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

/** Imports a session that began in `/src/app` and went on in a directory on another branch. */
async function imported(home: TempHome, dir: TempDir, cwd = '/src/app/api'): Promise<void> {
  const at = (where: string, gitBranch: string) => ({ cwd: where, gitBranch, version: '2.1.330' });
  const [main, fix] = [at('/src/app', 'main'), at(cwd, 'fix')];
  const records = [
    person({ uuid: 'u1' }, 'Read it', main),
    {
      type: 'attachment',
      uuid: 'x1',
      parentUuid: 'u1',
      attachment: { type: 'date' },
      rendered: [{ content: '<system-reminder>\nIt is late.\n</system-reminder>' }],
      ...main,
    },
    model({ uuid: 'a1', parent: 'x1' }, [calls('toolu_1')], main),
    person({ uuid: 'u2', parent: 'a1' }, [returns('toolu_1')], main),
    {
      ...person({ uuid: 'r1', parent: 'u2' }, '<system-reminder>\nIt has a name.\n</system-reminder>\n', fix),
      isMeta: true,
    },
    person({ uuid: 'u3', parent: 'r1' }, 'Mend it', fix),
    model({ uuid: 'a2', parent: 'u3' }, [says('Done.')], fix),
  ];
  writeFileSync(dir.file('s-1.jsonl'), jsonl(records));
  expect((await home.tape(['import', dir.file('s-1.jsonl'), '--as', 'one'])).code).toBe(0);
}

test('sessions and log select by the directory, branch, model and version that an import records', async () => {
  using home = tempHome();
  using dir = tempDir();
  await imported(home, dir);
  const where = async (conditions: string) =>
    (await home.tape(['sessions', '--quiet', '--where', conditions])).stdout.trim();
  for (const found of [
    'dir=/src',
    'dir=/src/app',
    'branch=fix',
    'model=claude-*',
    'version=2.1.330,branch=main',
  ])
    expect([found, await where(found)]).toEqual([found, 'one']);
  for (const other of ['dir=/src/ap', 'branch=fi', 'model=claude', 'version=2.1.*,branch=other'])
    expect([other, await where(other)]).toEqual([other, '']);
  const atHome = await home.here(['sessions', '--quiet', '--where', 'dir=~/app'], { env: { HOME: '/src' } });
  expect(atHome.stdout.trim()).toBe('one');
  expect(await where(`dir=${join('..', '..', '..', '..', '..', '..', '..', 'src')}`)).toBe('one');

  const log = async (...args: string[]) => (await home.tape(['log', 'one', '--oneline', ...args])).stdout;
  expect(await log('--where', 'branch=fix')).toMatch(
    /^\s+\d+\s+user\s+Mend it\n\s+\d+\s+assistant\s+Done\.\n$/,
  );
  expect(await log('--where', 'model=claude-x')).not.toContain('Mend it');
  // A reminder is for the model; the calls of a model and their results are on one branch.
  for (const reminder of ['It is late', 'It has a name']) {
    expect(await log()).not.toContain(reminder);
    expect(await log('--all')).toContain(reminder);
  }
  expect(
    (await home.tape(['log', 'one', '--where', 'branch=main', '--role', 'tool', '--quiet'])).stdout,
  ).toMatch(/^\d+\n$/);

  const search = async (...args: string[]) =>
    (await home.tape(['search', 'mend', '--quiet', ...args])).stdout.split('\n').length - 1;
  expect([await search(), await search('--where', 'branch=fix,dir=/src')]).toEqual([1, 1]);
  expect(await search('--where', 'branch=main')).toBe(0);

  const bad = await home.tape(['sessions', '--where', 'mood=good']);
  expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining("cannot select where 'mood=good'")]);
});

test('a time selects an imported child by when it left there, and one made here by when it was made', async () => {
  using home = tempHome();
  using dir = tempDir();
  const on = (day: number) => ({ timestamp: `2026-03-0${day}T09:00:00.000Z` });
  const records = [
    person({ uuid: 'u1' }, 'Read it', on(1)),
    model({ uuid: 'a1', parent: 'u1' }, [says('Read.')], on(1)),
    person({ uuid: 'u2', parent: 'a1' }, 'Mend it', on(2)),
    model({ uuid: 'a2', parent: 'u2' }, [says('Mended.')], on(2)),
    person({ uuid: 'u3', parent: 'a1' }, 'Leave it', on(4)),
  ];
  writeFileSync(dir.file('s-1.jsonl'), jsonl(records));
  await home.tape(['import', dir.file('s-1.jsonl')]);
  await home.tape(['fork', 's-1', '--as', 'today']);
  const forks = async (...args: string[]) => {
    const { stdout } = await home.tape(['log', 's-1', '--oneline', ...args]);
    return [...stdout.matchAll(/forked (\S+)/g)].map(([, name]) => name);
  };
  const branch = 's-1-branch-u2';
  expect(await forks()).toEqual([branch, 'today']);
  expect(await forks('--until', '2026-03-03')).toEqual([branch]);
  expect(await forks('--since', '2026-03-03')).toEqual(['today']);
});

test('an imported session is run, forked and delegated from; a run says where it worked, once', async () => {
  using home = tempHome();
  using dir = tempDir();
  using elsewhere = tempDir();
  await imported(home, dir, elsewhere.path);
  const answers = dir.file('answers.json');
  writeFileSync(answers, JSON.stringify([{ text: 'Fine.' }, { text: 'Fine.' }, { text: 'Fine.' }]));
  const scripted = ['--model', `script:${answers}`];
  const delegated = await home.tape(['delegate', 'one', '--task', 'Look again', ...scripted]);
  expect([delegated.code, delegated.stderr]).toEqual([0, expect.not.stringContaining('worked in')]);
  expect((await home.tape(['fork', 'one', '--as', 'two'])).code).toBe(0);

  const first = await home.tape(['run', 'two', 'Go on', ...scripted]);
  expect([first.code, first.stdout]).toEqual([0, 'Fine.\n']);
  expect(first.stderr).toContain(
    `two worked in ${elsewhere.path}, and runs here now (run it there with: cd ${elsewhere.path} && tape run two --home ${home.path})`,
  );
  expect((await home.tape(['run', 'two', 'And on', ...scripted])).stderr).not.toContain('worked in');
  expect((await home.tape(['verify'])).code).toBe(0);
});

test('show says where an imported session comes from, and where it worked last', async () => {
  using home = tempHome();
  using dir = tempDir();
  await imported(home, dir);
  const shown = async () => (await home.tape(['show', 'one'])).stdout;
  const rows = ['imported        claude-code s-1', 'dir             /src/app/api'];
  expect(await shown()).toContain([...rows, 'branch          fix', 'version         2.1.330'].join('\n'));
  const { imported: from } = json(await home.tape(['show', 'one', '--json']));
  const place = { dir: '/src/app/api', branch: 'fix', version: '2.1.330' };
  expect(from).toEqual({ tool: 'claude-code', session: 's-1', ...place });
  home.session('main');
  expect(json(await home.tape(['show', 'main', '--json']))).not.toHaveProperty('imported');
});
