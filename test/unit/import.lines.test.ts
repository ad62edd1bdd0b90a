import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ImportError, parseJsonLines, readJsonLines, readTranscript } from '@tapedeck/runtime/import';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const values = (text: string | Uint8Array) =>
  parseJsonLines([typeof text === 'string' ? Buffer.from(text) : text]).records.map(({ value }) => value);

function failure(run: () => unknown): ImportError {
  try {
    run();
  } catch (error) {
    if (error instanceof ImportError) return error;
    throw error;
  }
  throw new Error('it did not fail');
}

test.each([
  ['commas', ','.repeat(600_000)],
  ['quotes', '"'.repeat(300_000)],
  ['backslashes', '\\'.repeat(300_001)],
  ['the text of another record', JSON.stringify({ list: Array.from({ length: 300_000 }, () => '\\"') })],
])('a string of many %s is one value', (_, text) => {
  expect(values(`${JSON.stringify({ a: [text, ''], b: text })}\n`)).toEqual([{ a: [text, ''], b: text }]);
});

describe('lines', () => {
  test('a record has its line and the byte offset of that line', () => {
    const { records } = parseJsonLines([Buffer.from('{"a":"é"}\n\n{"b":2}\r\n{"c":3}')]);
    expect(records.map(({ line, offset }) => [line, offset])).toEqual([
      [1, 0],
      [3, 12],
      [4, 21],
    ]);
  });

  test('chunks may end anywhere, inside a character too', () => {
    const bytes = Buffer.from('{"a":"…\u{1f4fc}"}\n{"b":2}\n');
    const single = [...bytes].map((byte) => Uint8Array.of(byte));
    expect(parseJsonLines(single)).toEqual(parseJsonLines([bytes]));
  });

  test('only a newline ends a line: U+2028, U+2029 and U+0085 are text', () => {
    const text = 'a\u2028b\u2029c\u0085d';
    expect(values(`${JSON.stringify({ text })}\n`)).toEqual([{ text }]);
  });

  test('a line of a megabyte and more is one record', () => {
    const text = 'x'.repeat(1_500_000);
    const chunks = Buffer.from(`${JSON.stringify({ text })}\n{"b":2}\n`);
    const pieces = Array.from({ length: 30 }, (_, i) => chunks.subarray(i * 65_536, (i + 1) * 65_536));
    expect(parseJsonLines(pieces).records.map(({ value }) => value)).toEqual([{ text }, { b: 2 }]);
  });

  test('a line over 64 MiB is refused before it is read whole', () => {
    let given = 0;
    const endless = (function* () {
      const mebibyte = Buffer.alloc(1024 * 1024, 'x');
      while (given < 200) {
        given += 1;
        yield mebibyte;
      }
    })();
    expect(failure(() => parseJsonLines(endless)).code).toBe('IMPORT_BAD_JSON');
    expect(given).toBeLessThan(70);
  });

  test.each([
    ['two', '{"a":1}{"b":2}\n{"c":3}\n', [{ a: 1 }, { b: 2 }, { c: 3 }], 1],
    ['three with spaces', '{"a":1} {"b":2}  {"c":3}\n', [{ a: 1 }, { b: 2 }, { c: 3 }], 1],
    ['with braces and quotes in strings', '{"a":"}{\\"}"}{"b":"\\\\"}\n', [{ a: '}{"}' }, { b: '\\' }], 1],
    ['the last, not finished', '{"a":1}{"b":2}{"c":', [{ a: 1 }, { b: 2 }], 1],
  ])('records joined on one line are separated: %s', (_, text, expected, glued) => {
    const lines = parseJsonLines([Buffer.from(text)]);
    expect(lines.records.map(({ value }) => value)).toEqual(expected);
    expect(lines.glued).toBe(glued);
  });

  test.each([
    ['in a string', '{"a":1}\n{"b":"tw'],
    ['in a character', Buffer.from('{"a":1}\n{"b":"é"}').subarray(0, 15)],
    ['with a newline that was added later', '{"a":1}\n{"b":"tw\n'],
    ['and blank lines behind', '{"a":1}\n{"b":\n \r\n\n'],
  ])('a last line that ends inside a record is ignored: %s', (_, text) => {
    const lines = parseJsonLines([Buffer.from(text)]);
    expect(lines).toMatchObject({ truncated: 1, glued: 0, bad: [{ why: 'the line ends inside a record' }] });
    expect(lines.records.map(({ value }) => value)).toEqual([{ a: 1 }]);
  });

  test('a last line without its newline is a record', () => {
    expect(parseJsonLines([Buffer.from('{"a":1}\n{"b":2}')])).toMatchObject({ truncated: 0 });
    expect(values('{"a":1}\n{"b":2}')).toEqual([{ a: 1 }, { b: 2 }]);
  });

  test('JSON that is not an object is no record', () => {
    expect(parseJsonLines([Buffer.from('1\n[]\nnull\n{"a":1}\n')])).toMatchObject({ skipped: 3 });
  });

  const deep = `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`;
  test.each([
    ['broken', '{"a":1}\n{"b" 2}\n{"c":3}\n', 13, "not JSON: expected ':' after property name"],
    [
      'with a wrong character, whose place the parser does not report',
      '{"a":1}\n{"b":}\n{"c":3}',
      8,
      'not JSON',
    ],
    ['cut in the middle of the file', '{"a":1}\n{"b":"tw\n{"c":3}\n', 16, 'the line ends inside a record'],
    ['with text behind a record', '{"a":1}\n{"b":2}oops\n{"c":3}\n', 15, 'not a JSON object'],
    ['that is not UTF-8', Buffer.from('{"a":1}\n{"b":"\xff"}\n{"c":3}\n', 'latin1'), 14, 'not UTF-8'],
    ['nested over 64 levels', `{"a":1}\n${deep}\n{"c":3}\n`, 8, 'nested over 64 levels'],
    [
      'nested as no parser would survive',
      `{"a":1}\n{"b":${'['.repeat(400_000)}\n{"c":3}\n`,
      8,
      'nested over 64 levels',
    ],
    [
      'with over 250,000 values',
      `{"a":1}\n{"b":[${'10,'.repeat(250_000)}1]}\n{"c":3}\n`,
      750_007,
      'over 250000 values',
    ],
    ['with a NUL byte inside', '{"a":1}\n{"b":"\0"}\n{"c":3}\n', 14, 'a NUL byte in a record'],
    ['of NUL bytes', '{"a":1}\n\0\0\n{"c":3}\n', 8, '2 NUL bytes'],
    ['that is a list', '{"a":1}\n[2]\n{"c":3}\n', 8, 'it is JSON, but no object'],
  ])('a line %s is left out, and counted with its place and the reason', (_, text, offset, why) => {
    const lines = parseJsonLines([Buffer.from(text)]);
    expect(lines.records.map(({ value }) => value)).toEqual([{ a: 1 }, { c: 3 }]);
    expect(lines).toMatchObject({ skipped: 1, truncated: 0, bad: [{ line: 2, offset, why }] });
  });

  test('the whole records of a line that is cut in the middle of the file are kept', () => {
    expect(values('{"a":1}{"b":"tw\n{"c":3}\n')).toEqual([{ a: 1 }, { c: 3 }]);
  });

  test('a file with more bad lines than records is refused, however many they are', () => {
    const broken = failure(() => parseJsonLines([Buffer.from('{"a":1}\noops\n{"b" 2}\n')]));
    expect(broken.data).toMatchObject({ line: 2, offset: 8, why: 'not JSON' });
    expect(failure(() => parseJsonLines([Buffer.from('x\n'.repeat(100_000))])).data).toMatchObject({
      line: 1,
      offset: 0,
    });
    const half = parseJsonLines([Buffer.from('{"a":1}\nx\n'.repeat(200))]);
    expect([half.skipped, half.bad.length]).toEqual([200, 100]);
  });

  test.each([
    ['text', 'hello\n', 1, 0],
    ['text without a newline', 'hello', 1, 0],
    ['text behind a record', '{"a":1}oops\n', 1, 7],
    ['a glued line whose end is broken', '{"a":1}{"b" 2}\n', 1, 12],
    ['a document over several lines', '{\n  "a": 1\n}\n', 1, 1],
    ['an array over several lines', '[\n  {"a": 1}\n]\n', 1, 1],
    ['a character offset that is not a byte offset', '{"é" 1}\n', 1, 6],
    ['nesting over 64 levels', `${deep}\n`, 1, 0],
    ['nesting that no parser would survive', `{"a":${'['.repeat(400_000)}`, 1, 0],
    ['only the beginning of a record', '{"a":', 1, 5],
  ])('a file without a whole record is refused with the place of its first: %s', (_, text, line, offset) => {
    const error = failure(() => parseJsonLines([Buffer.from(text)], { file: 'x.jsonl' }));
    expect(error.code).toBe('IMPORT_BAD_JSON');
    expect(error.data).toMatchObject({ file: 'x.jsonl', line, offset });
    expect(error.message).toContain(`line ${line}, byte ${offset}: `);
  });

  test.each(['', '\n', ' \r\n\n'])('a file without records is empty: %j', (text) => {
    expect(failure(() => parseJsonLines([Buffer.from(text)])).code).toBe('IMPORT_EMPTY');
  });
});

describe('files', () => {
  let dir = '';
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'import-'));
  });
  afterAll(() => rmSync(dir, { recursive: true }));
  const file = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };

  test('are read across chunks', () => {
    const records = Array.from({ length: 2000 }, (_, i) => ({ i, text: 'é'.repeat(i % 700) }));
    const path = file('many.jsonl', records.map((r) => JSON.stringify(r)).join('\n'));
    expect(readJsonLines(path).records.map(({ value }) => value)).toEqual(records);
  });

  test('that cannot be read have their own error', () => {
    for (const path of [dir, join(dir, 'none.jsonl')]) {
      const error = failure(() => readTranscript(path, { format: 'auto' }));
      expect(error.code).toBe('IMPORT_CANNOT_READ');
      expect(error.data).toEqual({ file: path });
    }
  });

  test.each([
    ['codex', '{"timestamp":"t","type":"session_meta","payload":{}}\n'],
    [
      'pi',
      '{"type":"session","version":3,"id":"x"}\n{"type":"message","message":{"role":"user","content":[]}}\n',
    ],
    ['gemini', '{"type":"user","id":"1","content":"hi"}\n'],
    ['one array', '[{"type":"user","message":{"content":"hi"}}]\n'],
  ])('of another agent are no known format: %s', (name, text) => {
    const error = failure(() => readTranscript(file(`${name}.jsonl`, text), { format: 'claude-code' }));
    expect(error.code).toBe('IMPORT_UNKNOWN_FORMAT');
    expect(failure(() => readTranscript(file(`${name}.jsonl`, text))).message).toContain('Claude Code');
  });

  test('name their session when no record does', () => {
    const path = file('notes.jsonl', '{"type":"user","message":{"content":"hi"}}\n');
    expect(readTranscript(path)).toMatchObject({ format: 'claude-code', session: 'notes' });
  });
});
