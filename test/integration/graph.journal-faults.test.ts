import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { fileOf, lines, tempDir } from '../unit/graph.support/lines.ts';

/** How many bytes each coming write may take; -1 fails. No entry: all of them. */
const plan = vi.hoisted(() => ({ writes: [] as number[], syncFails: false, synced: [] as string[] }));

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const writeSync = (fd: number, bytes: Buffer, offset: number, length: number, position: null) => {
    const most = plan.writes.shift() ?? length;
    if (most === -1)
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    return most === 0 ? 0 : fs.writeSync(fd, bytes, offset, Math.min(most, length), position);
  };
  const fdatasyncSync = (fd: number) => {
    if (plan.syncFails) throw Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' });
    plan.synced.push('file');
    fs.fdatasyncSync(fd);
  };
  const fsyncSync = (fd: number) => {
    plan.synced.push(fs.fstatSync(fd).isDirectory() ? 'directory' : 'file');
    fs.fsyncSync(fd);
  };
  return {
    ...fs,
    writeSync,
    fdatasyncSync,
    fsyncSync,
    default: { ...fs, writeSync, fdatasyncSync, fsyncSync },
  };
});

// Files before and after this one, in the same process, have the package without these calls.
vi.resetModules();
afterAll(() => {
  vi.resetModules();
});
const { checkJournal, lineHash, openJournal, readLines } = await import('@tapedeck/graph');

afterEach(() => {
  plan.writes = [];
  plan.syncFails = false;
  plan.synced = [];
});

const ioError = expect.objectContaining({ name: 'GraphError', code: 'GRAPH_IO' });

test('a new file is synced with its directory, later appends sync the file alone', () => {
  using dir = tempDir();
  using journal = openJournal(join(dir.path, 'g.jsonl'));
  const all = lines(3);
  for (const line of all) journal.append([line]);
  using again = openJournal(join(dir.path, 'g.jsonl'));
  again.append([]);
  again.append(['{"g":4}']);
  expect(plan.synced).toEqual(['directory', 'file', 'file', 'file', 'file']);
});

test('short writes are repeated until every byte is written', () => {
  using dir = tempDir();
  const path = join(dir.path, 'g.jsonl');
  const all = lines(4);
  using journal = openJournal(path);
  plan.writes = [1, 2, 3, 100, 5];
  journal.append(all);
  expect(plan.writes).toEqual([]);
  expect(readFileSync(path, 'utf8')).toBe(fileOf(all));
});

test('a write of zero bytes is an error, not an endless loop', () => {
  using dir = tempDir();
  using journal = openJournal(join(dir.path, 'g.jsonl'));
  plan.writes = [10, 0];
  expect(() => journal.append(lines(1))).toThrow(ioError);
});

test('after a write failed at any byte, the next tail is correct and the file contains each line once', () => {
  const all = lines(4);
  const bytes = Buffer.byteLength(fileOf(all.slice(1)));
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: bytes }), { maxLength: 3 }), (taken) => {
      using dir = tempDir();
      const path = join(dir.path, 'g.jsonl');
      using journal = openJournal(path);
      journal.append(all.slice(0, 1));
      const before = readFileSync(path);
      plan.writes = [...taken, -1];
      try {
        journal.append(all.slice(1));
      } catch (error) {
        expect(error).toEqual(ioError);
      }
      plan.writes = [];
      const torn = readFileSync(path);
      expect(torn.subarray(0, before.length).equals(before)).toBe(true);
      const tail = journal.tail();
      expect(tail.torn).toBe(torn.at(-1) !== 0x0a);
      expect(tail.hash).toBe(lineHash(all[tail.g - 1] ?? ''));
      journal.append(all.slice(tail.g));
      expect(readFileSync(path).subarray(0, torn.length).equals(torn)).toBe(true);
      expect(checkJournal(readLines(path))).toMatchObject({ records: 4, g: 4, torn: false, problems: [] });
    }),
  );
});

test('a failed sync is an error, and the next tail finds what was written', () => {
  using dir = tempDir();
  const path = join(dir.path, 'g.jsonl');
  const all = lines(2);
  using journal = openJournal(path);
  plan.syncFails = true;
  expect(() => journal.append(all.slice(0, 1))).toThrow(ioError);
  plan.syncFails = false;
  expect(journal.tail()).toEqual({ g: 1, hash: lineHash(all[0] ?? ''), torn: false });
  journal.append(all.slice(1));
  expect(readFileSync(path, 'utf8')).toBe(fileOf(all));
});

test('a real limit on the file size tears the tail, and a later append completes it', () => {
  using dir = tempDir();
  const path = join(dir.path, 'g.jsonl');
  const all = lines(8);
  const script = `import { openJournal } from '@tapedeck/graph/journal';
    try { openJournal(process.argv[1]).append(JSON.parse(process.argv[2])); process.exitCode = 1; }
    catch (error) { console.log(error.code, error.cause.code); }`;
  const out = execFileSync(
    'sh',
    // In blocks of 512 bytes.
    [
      '-c',
      'ulimit -f 2; exec "$0" --conditions=@tapedeck/source --input-type=module -e "$1" "$2" "$3"',
      process.execPath,
      script,
      path,
      JSON.stringify(all),
    ],
    { cwd: import.meta.dirname, encoding: 'utf8' },
  );
  expect(out).toBe('GRAPH_IO EFBIG\n');
  const torn = readFileSync(path, 'utf8');
  expect(torn.length).toBe(1024);
  expect(fileOf(all).startsWith(torn)).toBe(true);
  using journal = openJournal(path);
  const tail = journal.tail();
  expect(tail.torn).toBe(true);
  journal.append(all.slice(tail.g));
  expect(checkJournal(readLines(path))).toMatchObject({ records: 8, g: 8, fragments: 1, problems: [] });
});
