import { type BadLine, type JsonLine, placesMax } from '../lines/json-lines.ts';
import type { IrregularLine } from '../plan/faulty-lines.ts';
import { noCounts, type TranscriptCounts } from '../plan/transcript.ts';

/** What was found in a file, or in a part of one. */
export interface FoundInFile {
  readonly counts: TranscriptCounts;
  /**
   * The places of lines that were left out, the first of them; the counts have all as `skipped`, and one that ends inside a
   * record as `truncated`.
   */
  readonly bad: readonly BadLine[];
  /** Lines that were taken, though something in them is wrong, the first of them; the counts have all. */
  readonly irregular: readonly IrregularLine[];
}

/** What was found in a file, by what was found in its beginning and in the rest. Pure. */
export function bothOf(one: FoundInFile, rest: FoundInFile): FoundInFile {
  return {
    counts: combined(one.counts, rest.counts, 1),
    bad: [...one.bad, ...rest.bad].slice(0, placesMax),
    irregular: [...one.irregular, ...rest.irregular].slice(0, placesMax),
  };
}

/**
 * What was found in a file before a line, by what was found in all of it and what became of the records from there on.
 * Undefined where there are more places than are kept. Pure.
 */
export function foundBefore(
  all: FoundInFile,
  {
    line,
    records,
    counts,
  }: { readonly line: number; readonly records: readonly JsonLine[]; readonly counts: TranscriptCounts },
): FoundInFile | undefined {
  if (all.bad.length === placesMax || all.irregular.length === placesMax) return undefined;
  const isBehind = (place: { readonly line: number }) => place.line >= line;
  const lines = new Map<number, number>();
  for (const record of records) lines.set(record.line, (lines.get(record.line) ?? 0) + 1);
  const { truncated } = all.counts;
  const rest: TranscriptCounts = {
    ...counts,
    glued: [...lines.values()].filter((n) => n > 1).length,
    truncated,
    skipped: counts.skipped + all.bad.filter(isBehind).length - truncated,
    irregular: all.irregular.filter(isBehind).length,
  };
  return {
    counts: combined(all.counts, rest, -1),
    bad: all.bad.filter((one) => !isBehind(one)),
    irregular: all.irregular.filter((one) => !isBehind(one)),
  };
}

function combined(one: TranscriptCounts, other: TranscriptCounts, sign: 1 | -1): TranscriptCounts {
  const names = Object.keys(noCounts) as (keyof TranscriptCounts)[];
  return Object.fromEntries(
    names.map((name) => [name, one[name] + sign * other[name]]),
  ) as unknown as TranscriptCounts;
}
