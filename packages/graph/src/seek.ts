import { closeSync, fstatSync } from 'node:fs';
import { type Line, linesOf, type OpenFile, openForReading } from './lines.ts';

/**
 * Finds the records of a graph file with these numbers, by their order in the file: it reads a part of the file for each,
 * not all of it. Each has its text, as it is in the file; a number that was not found has none.
 * @throws GRAPH_UNREADABLE
 *
 * @example
 * ```ts
 * import { findRecords } from '@tapedeck/graph';
 *
 * console.log(findRecords('session_graph.jsonl', [7]).get(7)); // undefined
 * ```
 */
export function findRecords(path: string, numbers: Iterable<number>): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  const file = openForReading(path);
  if (file === undefined) return found;
  try {
    const { size } = fstatSync(file.fd);
    for (const number of numbers) {
      const text = findRecord(file, size, number);
      if (text !== undefined) found.set(number, text);
    }
    return found;
  } finally {
    closeSync(file.fd);
  }
}

/** Below this many bytes, lines are read one by one. */
const nearBytes = 64 * 1024;

function findRecord({ fd }: OpenFile, size: number, number: number): string | undefined {
  let [from, to] = [0, size];
  while (to - from > nearBytes) {
    const middle = from + Math.floor((to - from) / 2);
    const line = firstRecord(fd, middle, to);
    if (line === undefined || numberOf(line) > number) to = middle;
    else if (numberOf(line) < number) from = line.end;
    else return line.text;
  }
  for (const line of linesOf(fd, from)) {
    if (line.kind === 'line' && numberOf(line) === number) return line.text;
    if (line.end >= to) return undefined;
  }
  return undefined;
}

type Record = Extract<Line, { readonly kind: 'line' }>;

/** The first whole record that begins after a byte, and before another. */
function firstRecord(fd: number, after: number, before: number): Record | undefined {
  let isWhole = false;
  for (const line of linesOf(fd, after)) {
    if (line.start >= before) return undefined;
    // The first line is the rest of one that began earlier.
    if (isWhole && line.kind === 'line' && !Number.isNaN(numberOf(line))) return line;
    isWhole = true;
  }
  return undefined;
}

/** The number of a record, from its beginning; NaN for another text. */
function numberOf({ text }: Record): number {
  return Number(/^\{"v":1,"g":(\d+),/.exec(text)?.[1]);
}
