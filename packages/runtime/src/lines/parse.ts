import { isObject } from '@tapedeck/tape/internal';
import { ImportError, type ImportErrorCode } from './errors.ts';
import { noObject, parseLine, plainRecord, valuesIn } from './json-line.ts';
import { isBlank, type JsonLine } from './json-lines.ts';
import type { SplitLine } from './splitter.ts';

/** What is wrong with a line, and what of it was read nevertheless. */
export interface LineFault {
  readonly code: ImportErrorCode;
  readonly line: number;
  /** Bytes of the content before the fault. */
  readonly offset: number;
  readonly why: string;
  /** Records of the line that were read. */
  readonly kept: number;
}

/** The records of one line. */
export interface LineRecords {
  readonly records: readonly JsonLine[];
  readonly fault?: LineFault;
  /** Whether the line ends inside a record and has no newline yet: more of it may come. */
  readonly isUnfinished: boolean;
}

/**
 * The records of a line: none, one, or several without newlines between them. A line costs itself alone; around NUL bytes,
 * as a crash of the machine leaves them, the record is read. Pure.
 */
export function recordsOf(line: SplitLine, file: string): LineRecords {
  if (line.isTooLong) {
    if (!line.ended) return { records: [], isUnfinished: true };
    return failed(line, { why: `the line has ${line.length} bytes, which is too long` });
  }
  if (isBlank(line.bytes)) return { records: [], isUnfinished: false };
  const plain = plainRecord(line.bytes);
  if (plain !== undefined) {
    const record = { line: line.line, offset: line.offset, bytes: line.length, ...plain };
    return { records: [record], isUnfinished: false };
  }
  try {
    const { values, cut, nul } = parseLine(line, file);
    const objects = values.filter(isObject);
    const records = objects.map((value) => ({
      ...{ line: line.line, offset: line.offset, bytes: line.length, value, values: valuesIn(value) },
    }));
    const kept = records.length;
    if (cut !== undefined && !line.ended) return { records, isUnfinished: true };
    if (cut !== undefined) return { ...failed(line, { ...placeIn(cut), kept }), records };
    if (objects.length < values.length) return { ...failed(line, { why: noObject, kept }), records };
    if (nul !== undefined) return { ...failed(line, { ...placeIn(nul), kept }), records };
    return { records, isUnfinished: false };
  } catch (error) {
    if (!(error instanceof ImportError)) throw error;
    return line.ended ? failed(line, placeIn(error)) : { records: [], isUnfinished: true };
  }
}

function failed(
  { line, offset }: SplitLine,
  { why, kept = 0, at = offset }: { readonly why: string; readonly kept?: number; readonly at?: number },
): LineRecords {
  const fault = { code: 'IMPORT_BAD_JSON', line, offset: at, why, kept } as const;
  return { records: [], fault, isUnfinished: false };
}

/** The reason of a line's error, and its place. */
function placeIn({ data }: ImportError): { readonly why: string; readonly at: number } {
  return { why: String(data.why), at: Number(data.offset) };
}
