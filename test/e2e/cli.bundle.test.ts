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

/** Prints the path of each file that is read. */
const readers = `data:text/javascript,import fs from 'node:fs';
  const read = fs.readFileSync;
  fs.readFileSync = (...args) => { process._rawDebug('read ' + args[0]); return read(...args); };`;

test('nothing of the page of tape ui is loaded by another verb, or by a help', () => {
  // A package of others that is bundled as it is has no map.
  const files = globSync('*.cjs.map', { cwd: bundle });
  const sourcesOf = (file: string): readonly string[] =>
    JSON.parse(readFileSync(join(bundle, file), 'utf8')).sources;
  const ofPage = files.filter((file) =>
    sourcesOf(file).some((source) => /^\.\.\/src\/(?:ui|page)\//.test(source)),
  );
  expect(ofPage.length).toBeGreaterThan(1);
  using home = tempHome();
  home.session('main');
  for (const line of ['--help', 'ui --help', 'export --help', 'log main', 'sessions', 'graph']) {
    const argv = ['--import', readers.replaceAll('\n', ' '), tapeProgram, ...line.split(' ')];
    const { stderr, status } = spawnSync(process.execPath, [...argv, '--home', home.path], {
      encoding: 'utf8',
      env: { ...process.env, TAPE_TRUST_HOME: '1' },
    });
    const read = [...stderr.matchAll(/^read (.*)$/gm)].map(([, path = '']) => path);
    expect([line, status]).toEqual([line, 0]);
    expect(read.filter((path) => path.endsWith('.cjs')).length).toBeGreaterThan(0);
    const named = ofPage.map((file) => `/bundle/${file.replace(/\.map$/, '')}`);
    expect(
      read.filter((path) => path.includes('ui-dist') || named.some((end) => path.endsWith(end))),
    ).toEqual([]);
  }
});
