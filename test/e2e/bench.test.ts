import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Row } from '../bench/topic.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const program = fileURLToPath(new URL('../bench/run.ts', import.meta.url));

async function bench(
  dir: string,
  ...args: readonly string[]
): Promise<{ stdout: string; code: number | null }> {
  const child = spawn(process.execPath, ['--conditions=@tapedeck/source', program, ...args], {
    env: { ...process.env, TMPDIR: dir },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [stdout, [code]] = await Promise.all([
    text(child.stdout),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { stdout, code };
}

if (sized(false, true, true))
  test('the bench prints a ratio for each row, and leaves no files (sizes are too small to mean anything)', async () => {
    using dir = tempDir();
    using work = tempDir();
    const file = dir.file('rows.json');
    const topics = ['append', 'fork', 'read', 'open', 'verify', 'disk', 'search'];
    const { stdout, code } = await bench(work.path, ...topics, '--quick', '--json', file);
    expect(code).toBe(0);
    const rows = JSON.parse(readFileSync(file, 'utf8')) as Row[];
    for (const { work: name, ratio, ours, limit } of rows)
      for (const figure of [ratio, ours, limit]) {
        expect(Number.isFinite(figure), name).toBe(true);
        expect(figure, name).toBeGreaterThan(0);
      }
    const names = rows.map(({ work: name }) => name).join('\n');
    for (const measured of [
      /^durable append$/m,
      /^append, durability 'fast'$/m,
      /with the indexes$/m,
      /with the triggers$/m,
      /with the hash chain$/m,
      /^append in batches of/m,
      /^fork at/m,
      /^write-ahead log of a fork/m,
      /^durable merge/m,
      /^last view/m,
      /^read of all/m,
      /through \d+ forks \(CPU\)$/m,
      /^list of/m,
      /^cold open and last view/m,
      /^verify of/m,
      /^bytes on disk an entry/m,
      /^bytes on disk a fork/m,
      /^search of/m,
      /^indexing an entry/m,
    ])
      expect(names).toMatch(measured);
    // One line for each row, under a header.
    expect(stdout.trimEnd().split('\n').length).toBe(rows.length + 1);
    expect(readdirSync(work.path)).toEqual([]);
  });

test('the bench refuses an unknown topic', async () => {
  using work = tempDir();
  expect((await bench(work.path, 'apend')).code).toBe(2);
  expect(readdirSync(work.path)).toEqual([]);
});
