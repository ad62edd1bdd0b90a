import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { builtins } from '@tapedeck/runtime';
import { expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const root = new URL('../..', import.meta.url).pathname;

/** A process that runs a program until it is killed. */
function program(source: string, ...args: readonly string[]) {
  const options = ['--conditions=@tapedeck/source', '--input-type=module', '-e', source, ...args];
  const child = spawn(process.execPath, options, { cwd: root, stdio: 'ignore' });
  return {
    kill: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

const swapping = `
import { renameSync, symlinkSync, writeFileSync } from 'node:fs';
const [work, outside] = process.argv.slice(1);
process.chdir(work);
symlinkSync(outside, 'link');
for (;;) {
  try { renameSync('sub', 'was'); } catch {}
  try { renameSync('link', 'sub'); } catch {}
  writeFileSync('swapping', '');
  try { renameSync('sub', 'link'); } catch {}
  try { renameSync('was', 'sub'); } catch {}
}
`;

test('a link that another process swaps in and out leads no read and no write out of the workspace', {
  timeout: sized(60_000, 300_000, 3_600_000),
}, async () => {
  using dir = tempDir();
  const top = realpathSync(dir.path);
  const [work, outside] = [join(top, 'work'), join(top, 'outside')];
  for (const made of [work, join(work, 'sub'), outside]) mkdirSync(made);
  writeFileSync(join(outside, 'file'), 'outside needle');
  writeFileSync(join(work, 'sub/file'), 'inside needle');
  const { read_file, write_file, search_files, list_directory } = builtins();
  const options = {
    toolCallId: 'c1',
    messages: [],
    context: {
      directory: work,
      mayReach: (_: string, path: string) => path.startsWith(`${work}/`) || path === work,
    },
  };
  const swap = program(swapping, work, outside);
  const codes = new Set<string>();
  const shown: string[] = [];
  try {
    while (!existsSync(join(work, 'swapping'))) await sleep(5);
    for (let i = 0; i < sized(200, 200, 30_000); i += 1)
      for (const act of [
        () => read_file?.execute?.({ path: 'sub/file' }, options),
        () => write_file?.execute?.({ path: 'sub/file', text: 'inside needle' }, options),
        () => write_file?.execute?.({ path: `sub/new/${i % 5}`, text: 'inside' }, options),
        () => search_files?.execute?.({ pattern: 'needle' }, options),
        () => list_directory?.execute?.({ path: 'sub' }, options),
      ])
        try {
          shown.push(String(await act()));
        } catch (error) {
          codes.add((error as { code: string }).code);
        }
  } finally {
    await swap.kill();
  }
  expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('outside needle');
  expect(readdirSync(outside)).toEqual(['file']);
  expect(shown.filter((text) => text.includes('outside needle'))).toEqual([]);
  expect(shown.length).toBeGreaterThan(0);
  for (const code of codes) expect(code).toMatch(/^TOOL_/);
});

const writing = `
import { builtins } from '@tapedeck/runtime';
const { write_file } = builtins();
const options = { toolCallId: 'c1', messages: [], context: { directory: process.argv[1] } };
for (let i = 0; ; i += 1)
  await write_file.execute({ path: 'file', text: 'ab'[i % 2].repeat(3_000_000) }, options);
`;

test('a process that is killed while it writes leaves the old content or the new one', async () => {
  using dir = tempDir();
  const whole = ['a', 'b'].map((letter) => letter.repeat(3_000_000));
  for (let i = 0; i < sized(4, 4, 200); i += 1) {
    const writer = program(writing, dir.path);
    while (!existsSync(dir.file('file'))) await sleep(5);
    await sleep((i * 37) % 150);
    await writer.kill();
    const content = readFileSync(dir.file('file'), 'utf8');
    expect(whole.includes(content), `a file of ${content.length} characters`).toBe(true);
  }
});
