import { valuesIn } from './json-line.ts';
import type { JsonLine } from './json-lines.ts';

/** What is left of a longer line is collected at once: it takes several times its size. */
const bytesMax = 4 * 1024 * 1024;

/** What a value takes: an empty object does, of which a line has two bytes. */
const valueBytes = 64;

/** A record takes more than so many times its bytes where it has nothing but values. */
const usual = 4;

/** So much of such records is left until it is collected. */
const uncollectedMax = 16 * 1024 * 1024;

let uncollected = 0;

/** About how many bytes of memory a record takes. */
export function takenBy({ bytes, value, values = valuesIn(value) }: JsonLine): number {
  return Math.max(bytes, values * valueBytes);
}

/**
 * Parses a line of some bytes. Around that of a long one, and behind some that take many times their bytes, garbage is
 * collected, in a process that lets programs do that: V8 itself would wait until there are two or three times as much.
 */
export function collecting<T extends { readonly records: readonly JsonLine[] }>(
  bytes: number,
  parse: () => T,
): T {
  if (globalThis.gc === undefined) return parse();
  if (bytes >= bytesMax) globalThis.gc();
  const parsed = parse();
  for (const record of parsed.records) if (takenBy(record) > usual * bytes) uncollected += takenBy(record);
  if (bytes < bytesMax && uncollected < uncollectedMax) return parsed;
  globalThis.gc();
  uncollected = 0;
  return parsed;
}

/** What a step leaves of fewer records is little. */
const manyRecords = 20_000;

/** Whether a process that lets programs collect garbage has so many records at once that what they leave counts. */
export function savesMemory(records: number): boolean {
  return globalThis.gc !== undefined && records > manyRecords;
}

/**
 * Called between the steps of an import, with the number of their records. Collects all garbage, and gives its memory back to the
 * system: V8 itself keeps up to 50 MB of what it has collected.
 */
export function releaseBehind(records: number): void {
  if (savesMemory(records)) globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
