import { type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { tapeProgram } from '../support/programs.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;

/** More than a pipe holds. */
const long = 'The harbour is closed. '.repeat(20_000);

/** The command as a process with these descriptors. */
function started(home: TempHome, args: readonly string[], stdio: SpawnOptions['stdio']) {
  const child = spawn(process.execPath, [tapeProgram, ...args, '--home', home.path], {
    stdio,
    env: { ...process.env, TAPE_TRUST_HOME: '1' },
  });
  return { child, ended: new Promise<number | null>((resolve) => child.once('close', resolve)) };
}

/** A named pipe of a home. */
function fifo(home: TempHome): string {
  const path = home.file('fifo');
  expect(spawnSync('mkfifo', [path]).status).toBe(0);
  return path;
}

test('an answer is the same in a file, and in a pipe whose reader is slow', async () => {
  using home = tempHome();
  home.session('main', user(long));
  const args = ['show', 'main@2', '--json'];
  const file = openSync(home.file('answer'), 'w');
  const toFile = started(home, args, ['ignore', file, 'ignore']);
  closeSync(file);
  expect(await toFile.ended).toBe(0);
  const toPipe = started(home, args, ['ignore', 'pipe', 'ignore']);
  await sleep(300);
  const piped = await text(toPipe.child.stdout as NodeJS.ReadableStream);
  expect(await toPipe.ended).toBe(0);
  expect(piped).toContain(long);
  expect(readFileSync(home.file('answer'), 'utf8')).toBe(piped);
});

test('an answer is whole in a pipe that is full and that does not wait', async () => {
  using home = tempHome();
  home.session('main', user(long));
  const path = fifo(home);
  const pipe = openSync(path, O_RDWR | O_NONBLOCK);
  const { ended } = started(home, ['show', 'main@2', '--json'], ['ignore', pipe, 'ignore']);
  await sleep(300);
  const read = spawn('cat', [path], { stdio: ['ignore', 'pipe', 'ignore'] });
  closeSync(pipe);
  const [piped, code] = [await text(read.stdout), await ended];
  expect(code).toBe(0);
  expect(piped).toContain(long);
});

test('append reads a pipe that does not wait for what comes', async () => {
  using home = tempHome();
  home.session('main');
  const path = fifo(home);
  const reading = openSync(path, O_RDONLY | O_NONBLOCK);
  const writing = openSync(path, O_WRONLY);
  const { ended } = started(home, ['append', 'main'], [reading, 'ignore', 'ignore']);
  closeSync(reading);
  for (const content of ['Hello', 'world']) {
    await sleep(300);
    writeSync(writing, `${JSON.stringify({ role: 'user', content })}\n`);
  }
  closeSync(writing);
  expect(await ended).toBe(0);
  using store = home.open();
  expect(store.sessions.find('main')?.head).toBe(3);
});

test('append refuses a standard input that is closed', () => {
  using home = tempHome();
  home.session('main');
  const closed = spawnSync(
    'sh',
    ['-c', '"$0" "$1" append main --home "$2" <&-', process.execPath, tapeProgram, home.path],
    { encoding: 'utf8', env: { ...process.env, TAPE_TRUST_HOME: '1' } },
  );
  expect(closed).toMatchObject({ status: 2, stdout: '' });
  expect(closed.stderr).toContain('stdin has no lines');
});
