import type { Db } from '../db/db.ts';
import { isObject } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
import type { Ref } from '../tape/tape.ts';
import type { LineageLine, LineageType } from './line.ts';

/** Selects lines of the lineage. */
export interface LineageQuery {
  /** Only lines about this session; for a merge, that is the child. */
  readonly session?: Ref;
  readonly types?: readonly LineageType[];
  /** Number of the first line. */
  readonly from?: number;
}

/** How many lines are read at once. */
export const pageLines = 256;

/**
 * Reads the lines that this database recorded, in order, page by page. `tape`: row id of the session that the
 * lines are about.
 * @throws TAPE_CORRUPT at a line that is not a record
 */
export function* readLineage(
  db: Db,
  { tape, types, from = 1 }: Omit<LineageQuery, 'session'> & { readonly tape?: number | undefined },
): Generator<LineageLine> {
  const about = tape === undefined ? '' : 'AND tape_id = @tape';
  const typed = types === undefined ? '' : 'AND type IN (SELECT value FROM json_each(@types))';
  for (let after = from - 1; ; ) {
    const rows = db.all<{ g: number; line: string }>(
      `SELECT g, line FROM lineage WHERE g > @after ${about} ${typed} ORDER BY g LIMIT @limit`,
      {
        after,
        limit: pageLines,
        ...(tape !== undefined && { tape }),
        ...(types !== undefined && { types: JSON.stringify(types) }),
      },
    );
    for (const { g, line } of rows) yield parseLine(g, line);
    if (rows.length < pageLines) return;
    after = rows.at(-1)?.g ?? after;
  }
}

/**
 * Parses a stored line.
 * @throws TAPE_CORRUPT when it is not a record
 */
export function parseLine(g: number, line: string): LineageLine {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw unreadable(g, 'it is not JSON', cause);
  }
  if (!isLine(value)) throw unreadable(g, 'it is not a record');
  return value;
}

/** The fields that are a text in every line. */
const texts = ['type', 'session', 'session_id', 'tape', 'kind', 'status', 'created_at', 'at'];

/** Whether a stored line has what every reader of lines takes for granted. */
function isLine(value: unknown): value is LineageLine {
  if (!isObject(value) || typeof value.g !== 'number') return false;
  const { range } = value;
  const isRange = range === undefined || range === null || (Array.isArray(range) && range.length === 2);
  return isRange && texts.every((field) => typeof value[field] === 'string');
}

function unreadable(g: number, why: string, cause?: unknown): TapeError {
  return new TapeError('TAPE_CORRUPT', `cannot read line ${g} of the lineage: ${why}`, {
    data: { g },
    cause,
  });
}
