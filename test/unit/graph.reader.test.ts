import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GraphError, lineBytesMax, openSessionGraph, parseRecord, readLines } from '@tapedeck/graph';
import { encodeLine, type LineageLine } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasPeak, peakHook } from '../support/peak-memory.ts';
import { sized } from '../support/size.ts';
import { family, fileOf, lines, records, tempDir, ulid } from './graph.support/lines.ts';

const nothing = { torn: 0, malformed: 0, unknownType: 0, tooLong: 0, dangling: 0 };

/** Reads a file with this content: the sessions' names, and the skipped lines. */
function open(content: string | Uint8Array): { names: string[]; skipped: object } {
  using dir = tempDir();
  const path = join(dir.path, 'session_graph.jsonl');
  writeFileSync(path, content);
  const graph = openSessionGraph(path);
  return { names: graph.list().map(({ session }) => session), skipped: graph.skipped };
}

const [one = '', two = ''] = lines(2);
const names = ['s1', 's2'];

describe('a graph file', () => {
  test('that is missing is an empty graph', () => {
    using dir = tempDir();
    const graph = openSessionGraph(join(dir.path, 'none.jsonl'));
    expect(graph.list()).toEqual([]);
    expect(graph.skipped).toEqual(nothing);
    expect([...readLines(join(dir.path, 'none.jsonl'))]).toEqual([]);
  });

  test.each<[string, string | Uint8Array, { names: string[]; skipped: object }]>([
    ['that is empty', '', { names: [], skipped: nothing }],
    ['with CRLF', `${one}\r\n${two}\r\n`, { names, skipped: nothing }],
    ['with a byte order mark', `\ufeff${one}\n${two}\n`, { names, skipped: nothing }],
    ['with a torn tail', `${one}\n${two}\n{"v":1,"g`, { names, skipped: { ...nothing, torn: 1 } }],
    ['whose last LF is missing', `${one}\n${two}`, { names: ['s1'], skipped: { ...nothing, torn: 1 } }],
    [
      'with sealed fragments',
      `${one}\n{"v":1,"g\n\n${two}\n`,
      { names, skipped: { ...nothing, malformed: 2 } },
    ],
    [
      'with a run of NULs',
      `${one}\n${'\0'.repeat(4096)}\n${two}\n`,
      { names, skipped: { ...nothing, malformed: 1 } },
    ],
    [
      'with NULs at its end',
      `${one}\n${two}\n${'\0'.repeat(4096)}`,
      { names, skipped: { ...nothing, torn: 1 } },
    ],
    [
      'with a line of a megabyte',
      `${one}\n${one.replace('"s1"', `"${'x'.repeat(1_000_000)}"`)}\n${two}\n`,
      { names, skipped: { ...nothing, tooLong: 1 } },
    ],
    [
      'with bytes that are no UTF-8',
      Buffer.concat([
        Buffer.from(`${one}\n`),
        Buffer.from(one).fill(0xff, 40, 41),
        Buffer.from(`\n${two}\n`),
      ]),
      { names, skipped: { ...nothing, malformed: 1 } },
    ],
    [
      'with lines from a later version',
      `${one}\n{"v":1,"g":2,"type":"teleport"}\n${two.replace('{"v":1', '{"v":2')}\n${two}\n`,
      { names, skipped: { ...nothing, unknownType: 2 } },
    ],
    [
      'with other JSON',
      `${one}\n7\nnull\n[]\n"x"\n{}\n${two}\n`,
      { names, skipped: { ...nothing, malformed: 5 } },
    ],
    ['with two lines glued together', `${one}${two}\n`, { names: [], skipped: { ...nothing, malformed: 1 } }],
  ])('%s', (_, content, expected) => {
    expect(open(content)).toEqual(expected);
  });

  test('keeps what a line reader might take for a line end', () => {
    const odd = 'a\u2028b\u2029c\u0085d\ve\ff';
    const [line] = records({
      type: 'session',
      session_id: 'odd',
      session: ulid(1),
      intention: { next_steps: odd, digest: '' },
    });
    if (line === undefined) throw new Error('no line');
    // As tape writes it, and as any other JSON writer would.
    expect(open(`${encodeLine(line)}\n${JSON.stringify(line)}\n`)).toEqual({
      names: ['odd'],
      skipped: nothing,
    });
    expect(parseRecord(JSON.stringify(line))).toEqual({ kind: 'record', record: line });
  });

  test('of the longest lines is read whole, and one byte more is too long', () => {
    const pad = (size: number) => one.replace('"s1"', `"${'x'.repeat(size - one.length + 2)}"`);
    expect(pad(lineBytesMax)).toHaveLength(lineBytesMax);
    expect(open(`${pad(lineBytesMax)}\n`).skipped).toEqual(nothing);
    expect(open(`${pad(lineBytesMax + 1)}\n${two}\n`)).toEqual({
      names: ['s2'],
      skipped: { ...nothing, tooLong: 1 },
    });
  });

  test('of any bytes is read without an error, and its whole lines are read unchanged', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    const whole = Buffer.from(fileOf(family().map(encodeLine)));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 6 }),
        fc.nat(whole.length),
        (edits, length) => {
          const bytes = Buffer.from(whole);
          for (const [at, byte] of edits) bytes[at] = byte;
          writeFileSync(path, bytes.subarray(0, length));
          const graph = openSessionGraph(path);
          for (const { id } of graph.list()) graph.lineage(id);
          const parts = [...readLines(path)];
          expect(parts.at(-1)?.end ?? 0).toBe(length);
          expect(
            parts.every((part, i) => part.start === (parts[i - 1]?.end ?? 0) && part.number === i + 1),
          ).toBe(true);
        },
      ),
      { numRuns: sized(100, 150, 6_000) },
    );
  });

  test.skipIf(!hasPeak)('of hundreds of megabytes without a line end is read in little memory', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    writeFileSync(path, '');
    truncateSync(path, 700_000_000);
    appendFileSync(path, `\n${one}\n`);
    const script = `const { openSessionGraph } = await import('@tapedeck/graph');
      const graph = openSessionGraph(process.argv[1]);
      console.log(JSON.stringify({ skipped: graph.skipped.tooLong, read: graph.list().length }));`;
    const { output } = spawnSync(
      process.execPath,
      ['--require', peakHook, '--conditions=@tapedeck/source', '--input-type=module', '-e', script, path],
      { cwd: import.meta.dirname, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit', 'pipe'] },
    );
    expect(JSON.parse(output[1] ?? '')).toEqual({ skipped: 1, read: 1 });
    // In KB: about 100,000 without garbage, of which a busy machine collects some late.
    expect(Number(output[3])).toBeGreaterThan(0);
    expect(Number(output[3])).toBeLessThan(300_000);
  });
});

describe('a path that is no regular file is refused', () => {
  test.each<[string, (path: string) => void, RegExp]>([
    ['a directory', (path) => mkdirSync(path), /cannot read graph '.*': it is not a regular file/],
    ['a symbolic link', (path) => symlinkSync('/dev/zero', path), /it is a symbolic link/],
    ['a FIFO, without waiting', (path) => execFileSync('mkfifo', [path]), /it is not a regular file/],
  ])('%s', (_, make, words) => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    make(path);
    for (const act of [() => openSessionGraph(path), () => [...readLines(path)]]) {
      expect(act).toThrow(GraphError);
      expect(act).toThrow(words);
      expect(act).toThrow(expect.objectContaining({ code: 'GRAPH_UNREADABLE' }));
    }
  });
});

describe('a record', () => {
  const [record] = records({ type: 'session', session_id: 's1', session: ulid(1) });
  const read = (change: (fields: Record<string, unknown>) => void) => {
    const fields: Record<string, unknown> = { ...record };
    change(fields);
    return parseRecord(JSON.stringify(fields));
  };
  const createdAt = (value: unknown) => {
    const parsed = read((fields) => Object.assign(fields, { created_at: value }));
    return parsed.kind === 'record' ? parsed.record.created_at : parsed;
  };

  test('keeps a bad date unchanged', () => {
    expect(createdAt('yesterday')).toBe('yesterday');
    expect(createdAt('')).toBe('');
    expect(createdAt(17)).toBe('17');
    expect(createdAt(null)).toBe('null');
    expect(createdAt({ day: 1 })).toBe('{"day":1}');
    const graph = open(encodeLine({ ...(record as LineageLine), created_at: '2026-99-99' }).concat('\n'));
    expect(graph).toEqual({ names: ['s1'], skipped: nothing });
  });

  test('may have unknown fields', () => {
    expect(read((fields) => Object.assign(fields, { mood: { good: true } }))).toEqual({
      kind: 'record',
      record,
    });
  });

  test.each<[string, (fields: Record<string, unknown>) => void]>([
    ['a missing field', (fields) => delete fields.session],
    ['an empty id', (fields) => Object.assign(fields, { session: '' })],
    ['a wrong number', (fields) => Object.assign(fields, { g: '1' })],
    ['the number 0', (fields) => Object.assign(fields, { g: 0 })],
    ['a number that is not exact', (fields) => Object.assign(fields, { g: 2 ** 53 })],
    ['a range of one', (fields) => Object.assign(fields, { range: [1] })],
    ['a wrong type', (fields) => Object.assign(fields, { type: 5 })],
    ['no type', (fields) => delete fields.type],
  ])('with %s is malformed', (_, change) => {
    expect(read(change)).toEqual({ kind: 'skipped', reason: 'malformed', why: expect.any(String) });
  });

  test('whose type is a property of every object is of unknown type', () => {
    for (const type of ['constructor', '__proto__', 'toString'])
      expect(read((fields) => Object.assign(fields, { type }))).toMatchObject({ reason: 'unknownType' });
  });

  test("with a field '__proto__' is malformed, and changes no prototype", () => {
    const line = JSON.stringify(record);
    for (const bad of [
      line.replace('{', '{"__proto__":{"polluted":1},'),
      line.replace('{', '{"\\u005f_proto__":{"polluted":1},'),
      line.replace('{', '{"intention":{"digest":"","__proto__":{"polluted":1}},'),
    ])
      expect(parseRecord(bad)).toMatchObject({ reason: 'malformed', why: "it has a field '__proto__'" });
    expect({}).not.toHaveProperty('polluted');
  });

  test('with endless nesting is read or skipped, never an error', () => {
    const deep = `{"v":1,"x":${'['.repeat(60_000)}${']'.repeat(60_000)}}`;
    expect(parseRecord(deep)).toMatchObject({ kind: 'skipped', reason: 'malformed' });
  });
});
