import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { tapeProgram } from '../support/programs.ts';
import { tempHome } from '../support/temp-home.ts';

const bundle = join(dirname(tapeProgram), '../bundle');

/** Prints where a function is called that the command calls once. */
const spy = `data:text/javascript,const once = process.once;
  process.once = function (...args) {
    if (args[0] === 'exit') process.stderr.write(new Error('here').stack + '\\n');
    return once.apply(this, args);
  };`;

test('stack traces name the source files', () => {
  using home = tempHome();
  home.session('main');
  const node = ['--enable-source-maps', '--import', spy.replaceAll('\n', ' '), tapeProgram];
  const { stderr } = spawnSync(process.execPath, [...node, 'log', 'main', '--home', home.path], {
    encoding: 'utf8',
    env: { ...process.env, TAPE_TRUST_HOME: '1' },
  });
  expect(stderr).toMatch(/packages\/cli\/src\/early-exit\.ts:\d+:\d+/);
  expect(stderr).toMatch(/packages\/cli\/src\/start\.ts:\d+:\d+/);
});

test('each file of the bundle is a verb, or named by what it contains; none reads a path of this machine', () => {
  const files = globSync('*.cjs', { cwd: bundle });
  expect(files).toEqual(
    expect.arrayContaining(['start.cjs', 'writes.cjs', 'checks.cjs', 'log.cjs', 'run.cjs']),
  );
  for (const file of files) expect(readFileSync(join(bundle, file), 'utf8')).not.toContain(dirname(bundle));
});

test('each file that the bundle loads, at once or when a function is first called, is in it', () => {
  const files = globSync('*.cjs', { cwd: bundle });
  const loaded = files.flatMap((file) =>
    [...readFileSync(join(bundle, file), 'utf8').matchAll(/["'`]\.\/([\w-]+\.cjs)["'`]/g)].map(
      ([, name]) => name,
    ),
  );
  expect(new Set(loaded).size).toBeGreaterThan(20);
  expect(loaded.filter((name) => name !== undefined && !files.includes(name))).toEqual([]);
});
