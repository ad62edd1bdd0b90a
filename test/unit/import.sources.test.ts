import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  linkSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { markSessionsGone } from '@tapedeck/runtime/import';
import {
  beginningAs,
  compressionIn,
  LineReading,
  openFile,
  recognise,
  type Source,
  SourceTable,
} from '@tapedeck/runtime/internal';
import { afterAll, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';

const dir = mkdtempSync(join(tmpdir(), 'sources-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** More than one block. */
const text = Array.from({ length: 1500 }, (_, i) => `{"i":${i},"text":"${'x'.repeat(1000)}"}\n`).join('');

let n = 0;
function fileOf(content: string | Uint8Array, name = 'a.jsonl'): string {
  n += 1;
  const path = join(mkdtempSync(join(dir, `${n}-`)), name);
  writeFileSync(path, content);
  return path;
}

async function read(path: string, session = 's'): Promise<Source> {
  const file = openFile(path);
  try {
    const lines = new LineReading(file);
    for await (const _ of lines.batches());
    const compression = compressionIn(file);
    const about = { tool: 'claude-code', session, main: session, role: 'main', at: 1 } as const;
    return {
      path,
      ...file.facts,
      ...about,
      read: lines.state,
      ...(compression !== undefined && { compression }),
    };
  } finally {
    file.close();
  }
}

/** An act on a file, which leaves it where it is. */
const here = (act: (path: string) => void) => (path: string) => {
  act(path);
  return path;
};
/** An act that makes another file beside it. */
const beside = (end: string, act: (path: string, other: string) => void) => (path: string) => {
  act(path, `${path}${end}`);
  return `${path}${end}`;
};

test.each<[string, (path: string) => string]>([
  ['unchanged', here(() => {})],
  ['grown', here((path) => appendFileSync(path, '{"new":1}\n'))],
  ['grown', here((path) => appendFileSync(path, '{"new'))],
  ['moved', beside('.old', renameSync)],
  ['moved', beside('.link', linkSync)],
  ['copied', beside('.copy', (path, other) => cpSync(path, other))],
  ['copied', beside('.copy', (_, other) => writeFileSync(other, `${text}{"new":1}\n`))],
  [
    'compressed',
    beside('.zst', (path, other) => {
      writeFileSync(other, zstdCompressSync(readFileSync(path)));
      rmSync(path);
    }),
  ],
  ['rewritten', here((path) => writeFileSync(path, text.replace('"i":1499', '"i":0')))],
  ['rewritten', here((path) => truncateSync(path, text.length - 100))],
  ['rewritten', here((path) => writeFileSync(path, '{"other":1}\n'))],
  ['version', beside('.older', (_, other) => writeFileSync(other, text.slice(0, 5000)))],
])('what became of a file is known from its content: %s', async (as, act) => {
  const source = await read(fileOf(text));
  const path = act(source.path);
  const isHere = path === source.path;
  const seen = await recognise(path, {
    here: isHere ? source : undefined,
    elsewhere: isHere ? [] : [source],
  });
  expect(seen).toMatchObject({ as, source });
  if (seen.as === 'rewritten' || seen.as === 'version') expect(seen.common % (1024 * 1024)).toBe(0);
});

test('a file whose time alone has changed holds what was read, and nothing more', async () => {
  const source = await read(fileOf(text));
  utimesSync(source.path, 1, 1);
  expect(await recognise(source.path, { here: source, elsewhere: [] })).toMatchObject({ as: 'grown' });
});

test('a file replaced by a longer one of the same content has grown', async () => {
  const source = await read(fileOf(text));
  writeFileSync(`${source.path}.new`, `${text}{"new":1}\n`);
  renameSync(`${source.path}.new`, source.path);
  expect(await recognise(source.path, { here: source, elsewhere: [] })).toMatchObject({ as: 'grown' });
});

test('a file of no known session is new', async () => {
  expect(await recognise(fileOf(text), { here: undefined, elsewhere: [] })).toEqual({ as: 'new' });
});

test('a table gives back what was put, the last of each path, and passes over torn and foreign lines', async () => {
  const file = join(dir, 'sources.jsonl');
  const [one, two] = [await read(fileOf('{"a":1}\n'), 'one'), await read(fileOf('{"b":2}\n'), 'two')];
  SourceTable.open(file).put([one, two]);
  appendFileSync(file, '[9,"/later"]\n[3,"/short"]\n{"v":9}\nnonsense\n[3,"/half","to');
  const table = SourceTable.open(file);
  expect(table.all).toEqual([one, two]);
  const again = { ...one, at: 2 };
  table.put([again]);
  table.remove(two.path);
  expect(SourceTable.open(file).all).toEqual([again]);
  expect(table.at(one.path)).toEqual(again);
  expect(table.of({ tool: 'claude-code', session: 'one', path: '/elsewhere' })).toEqual([again]);
});

test('a table gives back what was put, however many files it has, what they are called and how many digits they have', async () => {
  const file = join(dir, 'many.jsonl');
  const one = await read(fileOf('{"a":1}\n'));
  const blocks = ['0'.repeat(32), '1'.repeat(32)];
  const many = Array.from({ length: 999 }, (_, i): Source => {
    const path = `/${'naïve → '.repeat(i % 41)}${i}.jsonl`;
    const digest = { ...one.read.digest, size: i, blocks: blocks.slice(i % 3) };
    const read = { ...one.read, offset: i, digest };
    return { ...one, path, inode: i % 2 === 0 ? i : '18446744073709551615', modified: i + 0.125, read };
  });
  SourceTable.open(file).put(many);
  expect(SourceTable.open(file).all).toEqual(many);
});

test('files that are not there are marked, once, and keep what is known of them', async () => {
  const file = join(dir, 'gone.jsonl');
  const [here, gone] = [await read(fileOf('{"a":1}\n')), await read(fileOf('{"b":2}\n'))];
  const table = SourceTable.open(file);
  table.put([here, gone]);
  const isThere = (path: string) => path === here.path;
  expect(table.missing(isThere)).toEqual([gone]);
  using store = openStore();
  expect(await markSessionsGone(store, table.missing(isThere), table, 5)).toEqual([]);
  expect(table.missing(isThere)).toEqual([]);
  expect(SourceTable.open(file).at(gone.path)).toEqual({ ...gone, goneAt: 5 });
});

test('a file is known by what it begins with, among sources of several sizes, plain or compressed', async () => {
  const lines = (n: number, from = 0) =>
    Array.from({ length: n }, (_, i) => `{"i":${i + from},"text":"${'x'.repeat(990)}"}\n`).join('');
  const sources = await Promise.all(
    [lines(10, 5), lines(400), lines(900, 1), lines(1300), lines(3000)].map((text) => read(fileOf(text))),
  );
  const as = async (content: string | Uint8Array) => (await beginningAs(fileOf(content), sources))?.path;
  const paths = sources.map(({ path }) => path);
  expect(await as(lines(2000))).toBe(paths[1]);
  expect(await as(zstdCompressSync(Buffer.from(lines(400))))).toBe(paths[1]);
  expect(await as(`${lines(900, 1)}{}\n`)).toBe(paths[2]);
  expect([await as(lines(399)), await as(''), await as(lines(9, 5))]).toEqual(Array(3).fill(undefined));
  const [, , , large] = sources;
  expect(await beginningAs(fileOf(lines(1300)), large === undefined ? [] : [large])).toBe(large);
});

test('a conversation is forgotten as a whole, under each path and after a restart', async () => {
  const file = join(dir, 'forgotten.jsonl');
  const source = await read(fileOf('{"a":1}\n'), 'one');
  SourceTable.open(file).put([{ ...source, forgottenAt: 5 }]);
  const table = SourceTable.open(file);
  expect(table.isForgotten({ tool: 'claude-code', main: 'one' })).toBe(true);
  expect(table.isForgotten({ tool: 'claude-code', main: 'two' })).toBe(false);
  expect(table.isForgotten({ tool: 'codex', main: 'one' })).toBe(false);
});

test('what an import that was under way writes of a conversation takes back nothing of its forgetting', async () => {
  const file = join(dir, 'late.jsonl');
  const about = { project: '/srv/one', first: '2026-03-01T10:00:00.000Z' };
  const source = await read(fileOf('{"a":1}\n'), 'one');
  const moved = { ...source, path: `${source.path}.moved` };
  const other = { ...(await read(fileOf('{"b":2}\n'), 'two')), project: '/srv/two' };
  const late = SourceTable.open(file);
  late.put([{ ...source, ...about }, other]);
  SourceTable.open(file).forget([{ ...source, forgottenAt: 5 }]);
  late.put([{ ...source, ...about }]);
  late.put([{ ...moved, ...about }]);
  late.remove(source.path);
  const table = SourceTable.open(file);
  expect(table.isForgotten({ tool: 'claude-code', main: 'one' })).toBe(true);
  expect(table.forgotten.map(({ path, forgottenAt }) => [path, forgottenAt])).toEqual([
    [source.path, 5],
    [moved.path, 5],
  ]);
  expect(table.all.map(({ project }) => project).filter((one) => one !== undefined)).toEqual(['/srv/two']);
  table.searched(7);
  expect(readFileSync(file, 'utf8')).not.toContain('/srv/one');
  expect(SourceTable.open(file).isForgotten({ tool: 'claude-code', main: 'one' })).toBe(true);
  expect(SourceTable.open(file)).toMatchObject({ all: { length: 3 }, lastImport: 7 });
});

test('a table that is written often stays in proportion to its files, and two writers lose nothing', async () => {
  const file = join(dir, 'often.jsonl');
  const [one, two] = [await read(fileOf('{"a":1}\n')), await read(fileOf('{"b":2}\n'))];
  const [first, second] = [SourceTable.open(file), SourceTable.open(file)];
  for (let i = 0; i < 400; i += 1) {
    first.put([{ ...one, at: i }]);
    second.put([{ ...two, at: i }]);
  }
  expect(SourceTable.open(file).all).toMatchObject([{ at: 399 }, { at: 399 }]);
  expect(readFileSync(file, 'utf8').split('\n').length).toBeLessThan(800);
});

test('a table that is a link is not written', async () => {
  const file = join(dir, 'link.jsonl');
  symlinkSync(join(dir, 'elsewhere.jsonl'), file);
  const source = await read(fileOf('{"a":1}\n'));
  expect(() => SourceTable.open(file).put([source])).toThrow(
    expect.objectContaining({ code: 'IMPORT_CANNOT_WRITE' }),
  );
});

test('a table that is a pipe is refused without waiting', () => {
  const file = join(dir, 'pipe.jsonl');
  execFileSync('mkfifo', [file]);
  expect(() => SourceTable.open(file)).toThrow(expect.objectContaining({ code: 'IMPORT_CANNOT_READ' }));
});
