import { execFileSync } from 'node:child_process';
import { globSync, mkdtempDisposableSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundle, isCurrent, saveCode } from './compiled-code.ts';

/**
 * Compiles the files of the bundle for this build of Node.js: `bin/tape.js` reads the code beside each file, so that a
 * process compiles nothing. Code contains what was compiled when it was saved: the outline of each function, and the
 * functions that were called. These command lines call them. Each runs as a process of its own, with the code as those
 * before it left it.
 */
const others: readonly string[] = [
  'demo --home HOME',
  'view main',
  'append main',
  'fork main --as side',
  'append side',
  'merge side',
  'children main',
  'lineage main',
  'graph main',
  'search invoice',
  'diff main@5 main',
  'usage main',
  'verify',
  'check',
  'audit',
  'handoff main next --summary Done.',
  'rewind main@17',
  'new other',
  'alias other third',
  'log --help',
  'overview',
];

/** The command lines whose functions the code of start.cjs has: it takes a millisecond for 200 KB to read it. */
const usual: readonly string[] = [
  'sessions',
  'status main',
  'log main -n 20',
  'show main@3',
  'append main',
  'fork main',
  '__complete log ',
];

const codes = globSync('*.code', { cwd: bundle }).map((name) => join(bundle, name));
const start = join(bundle, 'start.cjs.code');
/** The code of no file, and so never current: it is there until all is compiled. */
const unfinished = join(bundle, 'unfinished.code');
if (!codes.includes(start) || !codes.every(isCurrent)) {
  for (const code of codes) rmSync(code);
  writeFileSync(unfinished, '');
  // With this file the command loads all files as those that have code.
  saveCode(start, Buffer.alloc(0));
  using home = mkdtempDisposableSync(join(tmpdir(), 'tapedeck-build-'));
  const env = { PATH: process.env.PATH, HOME: home.path, TAPE_HOME: join(home.path, '.tape') };
  const node = [
    '--import',
    join(import.meta.dirname, 'record-code.ts'),
    join(import.meta.dirname, 'bin/tape.js'),
  ];
  const record = (line: string) =>
    execFileSync(process.execPath, [...node, ...line.replace('HOME', env.TAPE_HOME).split(' ')], {
      env,
      cwd: home.path,
      input: '{"role":"user","content":"Hello"}',
      stdio: ['pipe', 'ignore', 'pipe'],
    });
  others.forEach(record);
  saveCode(start, Buffer.alloc(0));
  usual.forEach(record);
  rmSync(unfinished);
}
