import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as graph from '@tapedeck/graph';
import type { LineageLine, LineageType, LineIntention } from '@tapedeck/tape/store';
import * as tape from '@tapedeck/tape/store';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCodePoint } from '../support/arbitrary-json.ts';
import { sized } from '../support/size.ts';
import { tempDir } from './graph.support/lines.ts';

// What a store writes and what this package reads are declared twice, so that a graph file can be read without
// the store. These tests keep the two the same.

const text = fc.oneof(
  fc.string({ unit: anyCodePoint }),
  // Lone surrogates too, and what line readers stumble over.
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
  fc.constantFrom('\u2028', '\u2029', '\u0085', '\ufeff', '\0', '\n', '\r\n', '__proto__', '{"v":1,"g":1}'),
);
const some = text.filter((s) => s !== '');
const position = fc.nat();
const option = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const types = {
  session: 0,
  fork: 0,
  status: 0,
  merge: 0,
  discard: 0,
  alias: 0,
  unalias: 0,
  archive: 0,
  link: 0,
} satisfies Record<LineageType, 0>;

function isType(type: string): type is LineageType {
  return Object.hasOwn(types, type);
}

const intention: fc.Arbitrary<LineIntention> = fc
  .record({
    next_steps: option(text),
    context_summary: option(text),
    trigger_on_complete: option(text),
    digest: text,
  })
  .map(compact);

const lineageLine: fc.Arbitrary<LineageLine> = fc
  .record({
    v: fc.constant(1),
    g: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    event_id: text,
    type: fc.constantFrom(...Object.keys(types).filter(isType)),
    session_id: some,
    parent_session_id: fc.option(text),
    from_anchor: fc.option(text),
    created_at: text,
    status: text,
    at: text,
    session: some,
    parent: fc.option(text),
    tape: text,
    kind: text,
    row: option(text),
    was: option(text),
    base: option(position),
    range: option(fc.option(fc.tuple(position, position))),
    spawn_key: option(text),
    intention: option(intention),
    into: option(text),
    into_session_id: option(text),
    seq: option(position),
    received: option(position),
    text_version: option(position),
    parent_head: option(text),
    child_head: option(text),
    alias: option(text),
    reason: option(text),
    edge: option(text),
    derived: option(fc.constant(true as const)),
    evidence: option(text),
    call: option(text),
    lifecycle: option(text),
    task: option(text),
    delivery: option(text),
    prev: text,
  } satisfies { [F in keyof LineageLine]-?: fc.Arbitrary<LineageLine[F] | undefined> })
  .map(compact);

/** Without the fields that are undefined, which JSON does not have. */
function compact<T extends object>(value: T): { [F in keyof T]: Exclude<T[F], undefined> } {
  return JSON.parse(JSON.stringify(value));
}

test('every line that tape encodes reads back equal', () => {
  fc.assert(
    fc.property(lineageLine, (line) => {
      expect(graph.parseRecord(tape.encodeLine(line))).toEqual({ kind: 'record', record: line });
    }),
    { numRuns: sized(60, 150, 10_000) },
  );
});

test('a file of such lines has that many lines, whatever they contain', () => {
  using dir = tempDir();
  const path = join(dir.path, 'g.jsonl');
  fc.assert(
    fc.property(fc.array(lineageLine, { maxLength: 8 }), (all) => {
      writeFileSync(path, all.map((line) => `${tape.encodeLine(line)}\n`).join(''));
      const read = [...graph.readLines(path)].map(
        (line) => line.kind === 'line' && graph.parseRecord(line.text),
      );
      expect(read).toEqual(all.map((record) => ({ kind: 'record', record })));
    }),
  );
});

test('the hash of a line is the one that tape chains with', () => {
  expect(graph.firstPrev).toBe(tape.firstLinePrev);
  fc.assert(
    fc.property(text, (line) => {
      expect(graph.lineHash(line)).toBe(tape.hashLine(line));
    }),
  );
});
