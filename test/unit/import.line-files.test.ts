import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { type ImportError, type JsonLine, parseJsonLines } from '@tapedeck/runtime/import';
import { type LineFault, LineReading, openFile, type ReadState } from '@tapedeck/runtime/internal';
import { afterAll, describe, expect, test } from 'vitest';
import { atFullSize, sized } from '../support/size.ts';

const dir = mkdtempSync(join(tmpdir(), 'lines-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let n = 0;
function fileOf(content: string | Uint8Array): string {
  n += 1;
  const path = join(dir, `${n}.jsonl`);
  writeFileSync(path, content);
  return path;
}

type Options = ConstructorParameters<typeof LineReading>[1];

async function reading(path: string, options: Options = {}, during?: () => void) {
  const file = openFile(path);
  try {
    const lines = new LineReading(file, options);
    const records: JsonLine[] = [];
    const faults: LineFault[] = [];
    for await (const batch of lines.batches()) {
      records.push(...batch.records);
      faults.push(...batch.faults);
      during?.();
    }
    const { state, unfinished, counts } = lines;
    const values = records.map(({ value }) => value);
    return { records, values, faults, state, unfinished, counts, change: file.since() };
  } finally {
    file.close();
  }
}

async function failure(act: () => unknown): Promise<ImportError> {
  try {
    await act();
  } catch (error) {
    return error as ImportError;
  }
  throw new Error('it did not fail');
}

/** How many of some files this process has open. The process of a test may have any number of others. */
function openOf(paths: readonly string[]): number {
  const names = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      // It was closed meanwhile.
      return '';
    }
  });
  const open = new Set(names);
  return paths.filter((path) => open.has(realpathSync(path))).length;
}

describe('many files at once', () => {
  test('each is read, and says what became of it, also one that was replaced or is gone meanwhile', async () => {
    const paths = Array.from({ length: 150 }, (_, i) => fileOf(`{"i":${i}}\n`));
    const [replaced = '', gone = '', grown = ''] = paths;
    const files = paths.map((path) => openFile(path));
    if (process.platform === 'linux') expect(openOf(paths)).toBe(64);
    renameSync(fileOf('{"i":"o"}\n'), replaced);
    rmSync(gone);
    appendFileSync(grown, 'more\n');
    const text = (at: number) => Buffer.concat([...(files[at]?.chunks(0) ?? [])]).toString();
    for (const at of [0, 1])
      expect(await failure(() => text(at))).toMatchObject({
        code: 'IMPORT_CANNOT_READ',
        data: { file: paths[at] },
      });
    for (let at = 2; at < files.length; at += 1) expect(text(at)).toBe(`{"i":${at}}\n`);
    expect(files.slice(0, 4).map((file) => file.since())).toEqual(['replaced', 'gone', 'grown', 'none']);
    for (const file of files) file.close();
    if (process.platform === 'linux') expect(openOf(paths.slice(2))).toBe(0);
  });
});

describe('reading on', () => {
  const records = Array.from({ length: 300 }, (_, i) => ({ i, text: 'ä'.repeat(i % 90) }));
  const text = records.map((record) => `${JSON.stringify(record)}\n`).join('');

  test('a file read in pieces, wherever it was cut, gives each record once, with the state of one reading', async () => {
    const bytes = Buffer.from(text);
    const whole = await reading(fileOf(bytes));
    for (let cut = 1; cut < bytes.length; cut += 997) {
      const path = fileOf(bytes.subarray(0, cut));
      const first = await reading(path);
      const settled = first.values.filter((_, i) => (first.records[i]?.offset ?? 0) < first.state.offset);
      writeFileSync(path, bytes);
      const rest = await reading(path, { from: first.state });
      expect([...settled, ...rest.values]).toEqual(records);
      expect(rest.state).toEqual(whole.state);
      expect(rest.records.at(-1)).toEqual(whole.records.at(-1));
    }
  });

  test('blocks are known across a megabyte, and reading on reads the last of them alone', async () => {
    const big = text.repeat(120);
    expect(big.length).toBeGreaterThan(2 * 1024 * 1024);
    const path = fileOf(big);
    const first = await reading(path);
    expect(first.state.digest.blocks.length).toBeGreaterThan(1);
    appendFileSync(path, text);
    const rest = await reading(path, { from: first.state });
    expect(rest.values).toEqual(records);
    expect(rest.state).toEqual((await reading(fileOf(big + text))).state);
  });

  test('a file with other content before the place is refused, and one that is shorter', async () => {
    const path = fileOf(text);
    const { state } = await reading(path);
    writeFileSync(path, `${text.replace('"i":7,', '"i":8,')}{"i":1}\n`);
    expect((await failure(() => reading(path, { from: state }))).code).toBe('IMPORT_SOURCE_CHANGED');
    truncateSync(path, 100);
    expect((await failure(() => reading(path, { from: state }))).code).toBe('IMPORT_SOURCE_CHANGED');
  });

  test('a last line without a newline gives its record, and is read again', async () => {
    const path = fileOf('{"a":1}\n{"b":2}');
    const first = await reading(path);
    expect([first.values, first.state.offset, first.unfinished]).toEqual([
      [{ a: 1 }, { b: 2 }],
      8,
      undefined,
    ]);
    appendFileSync(path, '\n{"c":');
    const second = await reading(path, { from: first.state });
    expect(second.values).toEqual([{ b: 2 }]);
    expect(second.unfinished).toEqual({ line: 3, offset: 16 });
  });
});

describe('bad lines', () => {
  test.each<[string, string | Uint8Array, readonly unknown[], readonly Partial<LineFault>[]]>([
    ['no JSON', '{"a":1}\nnonsense\n{"b":2}\n', [{ a: 1 }, { b: 2 }], [{ line: 2, offset: 8, kept: 0 }]],
    ['cut off', '{"a":1}\n{"b":"x\n{"c":3}\n', [{ a: 1 }, { c: 3 }], [{ line: 2, offset: 15 }]],
    ['a list', '[1]\n{"b":2}\n', [{ b: 2 }], [{ line: 1, offset: 0, why: 'it is JSON, but no object' }]],
    [
      'NUL before a record',
      '{"a":1}\n\0\0\0{"b":2}\n',
      [{ a: 1 }, { b: 2 }],
      [{ line: 2, why: '3 NUL bytes', kept: 1 }],
    ],
    ['NUL alone', '\0\0\n{"b":2}\n', [{ b: 2 }], [{ line: 1, why: '2 NUL bytes', kept: 0 }]],
    ['NUL inside', '{"a":"x\0y"}\n{"b":2}\n', [{ b: 2 }], [{ line: 1, offset: 7 }]],
    [
      'no UTF-8',
      Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}\n{"b":2}\n')]),
      [{ b: 2 }],
      [{ line: 1, offset: 6, why: 'not UTF-8' }],
    ],
    [
      'glued, and one cut off',
      '{"a":1}{"b":2}{"c":\n{"d":4}\n',
      [{ a: 1 }, { b: 2 }, { d: 4 }],
      [{ line: 1, kept: 2 }],
    ],
    ['nested too deep', `${'['.repeat(200_000)}\n{"b":2}\n`, [{ b: 2 }], [{ line: 1, offset: 0 }]],
  ])('cost themselves alone, and have line, byte and reason: %s', async (_, content, values, faults) => {
    const path = fileOf(content);
    const found = await reading(path);
    expect(found.values).toEqual(values);
    expect(found.faults).toMatchObject(faults);
    expect(found.faults).toHaveLength(faults.length);
    expect(await failure(() => reading(path, { strict: true }))).toMatchObject({
      code: 'IMPORT_BAD_JSON',
      data: { file: path, line: faults[0]?.line },
    });
  });

  test('a record named __proto__ is a record', async () => {
    const { values } = await reading(fileOf('{"__proto__":{"a":1}}\n'));
    expect(JSON.stringify(values)).toBe('[{"__proto__":{"a":1}}]');
  });

  test('millions of blank lines are passed over at once, and counted', async () => {
    const bytes = sized(3_000_000, 9_000_000, 30_000_000);
    const content = Buffer.concat([
      Buffer.from('{"a":1}'),
      Buffer.alloc(bytes, '\n'),
      Buffer.alloc(bytes, ' \r\n'),
      Buffer.from('\n{"b":2}\n\n'),
    ]);
    const path = fileOf(content);
    const { records, faults, state } = await reading(path);
    expect(faults).toEqual([]);
    expect(records.map(({ line, value }) => [line, value])).toEqual([
      [1, { a: 1 }],
      [bytes + bytes / 3 + 2, { b: 2 }],
    ]);
    expect(state).toMatchObject({ offset: content.length });
    // Without the counters of coverage: cut out one by one, they took four times as long as a split.
    if (!atFullSize) return;
    const split = await userTimeOf(() => content.toString('latin1').split('\n').length);
    expect(await userTimeOf(() => reading(path))).toBeLessThan(2 * split);
  });

  test('a line over the limit is passed over, with its length, and the next one is read', async () => {
    const path = fileOf(`{"a":"${'x'.repeat(3_000_000)}"}\n{"b":2}\n`);
    const { values, faults, state } = await reading(path, { bytesMax: 1_000_000 });
    expect(values).toEqual([{ b: 2 }]);
    expect(faults).toMatchObject([
      { line: 1, offset: 0, why: 'the line has 3000008 bytes, which is too long' },
    ]);
    expect(state).toMatchObject({ line: 3, offset: 3_000_009 + 8 });
  });

  test('a file with hardly any record is refused, not listed line by line', async () => {
    const path = fileOf('nonsense\n'.repeat(1000));
    expect((await failure(() => reading(path))).code).toBe('IMPORT_BAD_JSON');
  });
});

describe('compressed files', () => {
  const text = Array.from({ length: 5000 }, (_, i) => `{"i":${i}}\n`).join('');
  const skipped = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4]);

  test.each([
    ['zstd', zstdCompressSync(Buffer.from(text))],
    ['gzip', gzipSync(Buffer.from(text))],
    [
      'zstd behind a frame to skip, and with one between its frames',
      Buffer.concat([
        ...[skipped, zstdCompressSync(text.slice(0, 10_000))],
        ...[skipped, zstdCompressSync(text.slice(10_000))],
      ]),
    ],
    ['gzip in two members', Buffer.concat([gzipSync(text.slice(0, 10_000)), gzipSync(text.slice(10_000))])],
    [
      'zstd in two frames',
      Buffer.concat([zstdCompressSync(text.slice(0, 10_000)), zstdCompressSync(text.slice(10_000))]),
    ],
  ])('have the records and the state of the plain file, from any place: %s', async (_, bytes) => {
    const plain = await reading(fileOf(text));
    const packed = fileOf(bytes);
    const whole = await reading(packed);
    expect([whole.records, whole.state]).toEqual([plain.records, plain.state]);
    const begun = await reading(fileOf(text.slice(0, 10_000)));
    const rest = await reading(packed, { from: begun.state });
    expect(rest.records.at(-1)).toEqual(plain.records.at(-1));
    expect(rest.state).toEqual(plain.state);
  });

  test.each([
    ['zstd', zstdCompressSync(Buffer.from(text))],
    ['gzip', gzipSync(Buffer.from(text))],
  ])('cut off, are an error behind what could be read: %s', async (_, bytes) => {
    const error = await failure(() => reading(fileOf(bytes.subarray(0, bytes.length - 100))));
    expect(error).toMatchObject({ code: 'IMPORT_CANNOT_READ' });
    expect(error.message).toMatch(/damaged or cut off/);
  });

  test.each([
    ['zstd', zstdCompressSync(Buffer.alloc(20_000_000, '{"a":1}\n'))],
    ['gzip', gzipSync(Buffer.alloc(20_000_000, '{"a":1}\n'))],
  ])('that become far larger than they are, are refused on the way: %s', async (_, bytes) => {
    const limits = { bytes: 1_000_000, ratio: 100 };
    const error = await failure(() => reading(fileOf(bytes), { limits }));
    expect(error).toMatchObject({ code: 'IMPORT_TOO_LARGE', data: { line: expect.any(Number) } });
    expect(error.message).toContain(`line ${error.data.line}, byte ${error.data.offset}`);
  });
});

describe('files of more records than a transcript has, or of more values', () => {
  const bombs = ['{}\n', '{"type":"user"}\n', '{"type":"user","message":{"role":"user","content":"hi"}}\n'];
  const longer = `{"type":"user","message":{"role":"user","content":"${'hi'.repeat(100)}"}}\n`;

  test.each<[string, (bytes: Buffer) => Uint8Array, readonly string[]]>([
    ['plain', (bytes) => bytes, bombs],
    ['zstd', (bytes) => zstdCompressSync(bytes), [...bombs, longer]],
    ['gzip', (bytes) => gzipSync(bytes), [...bombs, longer]],
  ])('are refused after the first ten thousand, with line and byte: %s', async (_, pack, records) => {
    for (const record of records) {
      const path = fileOf(pack(Buffer.alloc(sized(3_000_000, 8_000_000, 8_000_000), record)));
      const error = await failure(() => reading(path));
      const line = Number(error.data.line);
      expect(error).toMatchObject({
        code: 'IMPORT_TOO_LARGE',
        data: { file: path, line, offset: (line - 1) * record.length },
      });
      expect(line).toBe(10_001);
    }
  });

  test('are read, where they have what records of transcripts have: ids', async () => {
    const records = Array.from(
      { length: 20_000 },
      () => `{"type":"user","uuid":"${randomUUID()}","text":"${'x'.repeat(50)}"}\n`,
    );
    const text = records.join('');
    for (const bytes of [Buffer.from(text), zstdCompressSync(text), gzipSync(text)])
      expect((await reading(fileOf(bytes))).counts.records).toBe(20_000);
  });

  test('cost a line, where all of them are glued into one', async () => {
    const glued = '{}'.repeat(sized(300_000, 600_000, 3_000_000));
    const { values, faults } = await reading(fileOf(`{"a":1}\n${glued}\n{"b":2}\n`));
    expect(values).toEqual([{ a: 1 }, { b: 2 }]);
    expect(faults).toMatchObject([{ line: 2, why: 'over 1000 records' }]);
  });

  const lists = '[],'.repeat(sized(1_000_000, 2_000_000, 20_000_000));
  const names = Array.from({ length: sized(300_000, 600_000, 600_000) }, (_, i) => `"${i}":1,`).join('');
  test.each([
    ['empty lists in a list', `{"a":[${lists}0]}`, 6 + 3 * 249_997 + 2],
    ['fields of an object', `{"a":{${names}"b":0}}`, 6 + names.split(',', 249_998).join(',').length],
    ['lists in lists', `{"a":${'['.repeat(1_000_000)}`, 5 + 249_998],
  ])('cost a line, where one has over 250,000 values: %s', async (_, many, at) => {
    const path = fileOf(`{"a":1}\n${many}\n{"b":2}\n`);
    const { values, faults } = await reading(path);
    expect(values).toEqual([{ a: 1 }, { b: 2 }]);
    expect(faults).toMatchObject([{ line: 2, offset: 8 + at, why: 'over 250000 values' }]);
  });

  test('are read with 250,000 values, and millions of commas in a text', async () => {
    const record = { a: Array.from({ length: 249_997 }, () => 10), b: '\\",[{'.repeat(1_000_000) };
    const { values, faults } = await reading(fileOf(`${JSON.stringify(record)}\n`));
    expect([faults, (values[0] as typeof record).a.length]).toEqual([[], 249_997]);
  });
});

/** What an act takes of the processor, in microseconds. */
async function userTimeOf(act: () => unknown): Promise<number> {
  const start = process.cpuUsage();
  await act();
  return process.cpuUsage(start).user;
}

describe('files that change or are none', () => {
  const text = Array.from({ length: 1000 }, (_, i) => `{"i":${i},"text":"${'x'.repeat(600)}"}\n`).join('');

  test.each<[string, (path: string) => void]>([
    ['none', () => {}],
    ['grown', (path) => appendFileSync(path, '{"late":1}\n')],
    ['shortened', (path) => truncateSync(path, 300_000)],
    ['gone', (path) => rmSync(path)],
    ['replaced', (path) => renameSync(fileOf(text), path)],
  ])('what happened during the read is known: %s', async (change, act) => {
    const path = fileOf(text);
    let done = false;
    const found = await reading(path, {}, () => {
      if (!done) act(path);
      done = true;
    });
    expect(found.change).toBe(change);
    if (change === 'shortened') expect(found.values.length).toBeLessThan(1000);
    else expect(found.values).toHaveLength(1000);
  });

  test('a pipe, a directory, and what is not there are refused without waiting', async () => {
    const pipe = join(dir, 'pipe.jsonl');
    execFileSync('mkfifo', [pipe]);
    for (const [path, why] of [
      [pipe, 'it is a pipe'],
      [dir, 'it is a directory'],
      [join(dir, 'nothing.jsonl'), 'it is gone'],
    ] as const)
      expect(await failure(() => openFile(path))).toMatchObject({
        code: 'IMPORT_CANNOT_READ',
        data: { why },
      });
  });
});

test('reading a state that a reading gave itself is a round trip of JSON', async () => {
  const path = fileOf('{"a":1}\n');
  const { state } = await reading(path);
  appendFileSync(path, '{"b":2}\n');
  const from: ReadState = JSON.parse(JSON.stringify(state));
  expect((await reading(path, { from })).values).toEqual([{ b: 2 }]);
});

test.each([
  ['whole', '{"a":1}\n{"b":2}\n'],
  ['without its last newline', '{"a":1}\n{"b":2}'],
  ['that ends inside a record', '{"a":1}\n{"b":2}{"c":'],
  ['glued and cut in the middle', '{"a":1}{"b":2}{"c\n{"d":4}\n'],
  ['with other JSON and other text', '{"a":1}\n[1]\nnull\noops\n \r\n{"b":2}oops\n{"c":3}\n'],
  ['with NUL bytes', '{"a":1}\n\0\0{"b":2}\0\n\0\0\0\n{"c":3}\0\0\n'],
  ['with bytes that are no UTF-8', Buffer.from('{"a":1}\n{"b":"\xff"}\n{"c":3}\n', 'latin1')],
])('a stream %s gives the records of a file, and leaves out as many lines', async (_, content) => {
  const { records, counts } = await reading(fileOf(content));
  const stream = parseJsonLines([Buffer.from(content)], { growing: true });
  expect(stream.records).toEqual(records);
  expect([stream.skipped, stream.glued]).toEqual([counts.faults, counts.glued]);
});
