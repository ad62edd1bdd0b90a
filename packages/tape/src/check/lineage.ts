import type { Db } from '../db/db.ts';
import { hex } from '../entry/hash.ts';
import type { JsonObject } from '../entry/json.ts';
import { parsed } from '../entry/parsed.ts';
import { firstLinePrev, hashLine } from '../lineage/line.ts';
import type { TapeRow } from '../tape/tape.ts';
import type { Beside } from './beside.ts';
import { agree, LinesBySession } from './lines.ts';
import type { Problem } from './problem.ts';

interface LineageRow {
  readonly g: number;
  readonly event_id: string;
  readonly type: string;
  readonly tape_id: number;
  readonly ulid: string | null;
  readonly peer: string | null;
  readonly peer_name: string | null;
  readonly seq: number | null;
  readonly to_seq: number | null;
  readonly line: string;
  readonly hash: Uint8Array;
}

const pageRows = 512;

/** Lines of one read of the chain, which makes no objects. */
const chainRows = 2_000;

/**
 * Verifies the hash chain of the lineage, and the columns beside each line against the line, and lines about one
 * session against each other.
 */
export function* verifyLineage(db: Db): Generator<Problem> {
  const told = new LinesBySession((g) => lineAt(db, g));
  let prevs = [firstLinePrev];
  let expected = 1;
  // A row that another program numbered 0 or below is read too.
  for (let after = -Infinity; ; ) {
    const rows = db.all<LineageRow>(
      `SELECT l.g, l.event_id, l.type, l.tape_id, t.ulid, p.ulid AS peer, p.name AS peer_name, l.seq, l.to_seq, l.line, l.hash
         FROM lineage l LEFT JOIN tape t ON t.id = l.tape_id LEFT JOIN tape p ON p.id = l.peer_id
         WHERE l.g > @after ORDER BY l.g LIMIT @limit`,
      { after, limit: pageRows },
    );
    for (const row of rows) {
      const { g, line, hash, tape_id: tape, peer_name: into } = row;
      const hashed = hashLine(line);
      const fields = parsed(line);
      const matches = matchesColumns(row, fields);
      const isMissing = g !== expected;
      const isOwn = hashed === hex(hash);
      const follows = isOwn && prevs.some((prev) => line.includes(`"prev":"${prev}"`));
      if (isMissing) {
        told.missing();
        yield broken(
          g > expected ? `lineage line ${expected} is missing` : `lineage line ${g} is not a line's number`,
        );
      } else if (!follows)
        yield broken(`lineage line ${g} does not follow from the line before it, or was changed`);
      else if (!matches) yield broken(`lineage line ${g} differs from the columns beside it`);
      if (isOwn && (isMissing || follows) && matches)
        yield* contradictions(g, told.compare(fields, { g, tape, into }));
      else told.skip(tape);
      prevs = [hashed, hex(hash)];
      expected = g + 1;
    }
    if (rows.length < pageRows) return;
    after = rows.at(-1)?.g ?? after;
  }
}

/**
 * Compares the lines about each tape while the tape is verified, which reads them anyway. When every line of a chain
 * without a gap agrees, `verifyLineage` would find nothing, and need not read and parse all of them again.
 */
export class LinesOfTapes {
  /** Number of the last line of the lineage, if each follows from the one before it. */
  readonly #last: number | undefined;
  /** How many lines up to that one agree with all that is beside them. */
  agreeing = 0;

  constructor(db: Db) {
    this.#last = lastChained(db);
  }

  /** Counts the lines about a tape, if they have their hashes, and agree with their columns and with each other. */
  saw({ ulid }: TapeRow, { lines }: Beside): void {
    const last = this.#last ?? 0;
    const own = lines.flatMap(({ fields, ...beside }) =>
      fields !== undefined && beside.g <= last && matchesColumns({ ...beside, ulid }, fields)
        ? [{ fields, into: beside.into }]
        : [],
    );
    if (agree(own)) this.agreeing += own.length;
  }

  /** Whether all lines agree. */
  get areWhole(): boolean {
    return this.#last === this.agreeing;
  }
}

/**
 * Returns the number of the last line, when the lines count from 1 and each names the hash of the one before;
 * undefined when not. That a line has its own hash is not compared.
 */
function lastChained(db: Db): number | undefined {
  let last = 0;
  for (;;) {
    // The first page finds lines below 1, too.
    const { lines, chained, to } = db.get<{ lines: number; chained: number; to: number }>(
      `SELECT count(*) AS lines, count(*) FILTER (WHERE follows) AS chained, coalesce(max(g), 0) AS "to" FROM (
         SELECT l.g, instr(l.line, '"prev":"' || CASE WHEN l.g = 1 THEN @first ELSE lower(hex(p.hash)) END || '"') > 0 AS follows
           FROM lineage l LEFT JOIN lineage p ON p.g = l.g - 1 WHERE l.g > @after ORDER BY l.g LIMIT @limit) page`,
      { after: last === 0 ? -Infinity : last, first: firstLinePrev, limit: chainRows },
    ) ?? { lines: 0, chained: 0, to: 0 };
    if (chained !== lines || (lines > 0 && to !== last + lines)) return undefined;
    last += lines;
    if (lines < chainRows) return last;
  }
}

function broken(message: string): Problem {
  return { code: 'lineage-broken', session: null, seq: null, message };
}

function* contradictions(g: number, fields: readonly string[]): Generator<Problem> {
  if (fields.length > 0)
    yield broken(`lineage line ${g} contradicts itself, or an earlier line, by its ${fields.join(', ')}`);
}

function lineAt(db: Db, g: number): JsonObject {
  const row = db.get<{ line: string }>('SELECT line FROM lineage WHERE g = @g', { g });
  return parsed(row?.line ?? null);
}

function matchesColumns(
  {
    event_id,
    type,
    ulid,
    peer,
    seq,
    to_seq,
  }: Pick<LineageRow, 'event_id' | 'type' | 'ulid' | 'peer' | 'seq' | 'to_seq'>,
  recorded: JsonObject,
): boolean {
  const to = Array.isArray(recorded.range) ? recorded.range[1] : null;
  return (
    recorded.event_id === event_id &&
    recorded.type === type &&
    recorded.session === ulid &&
    (recorded.into ?? recorded.parent ?? null) === peer &&
    (recorded.seq ?? null) === seq &&
    to === to_seq
  );
}

/** Yields the lines about a tape that do not have their hash, or contradict each other. */
export function* verifyLines(tape: TapeRow, { lines }: Beside): Generator<Problem> {
  const told = new LinesBySession((g) => lines.find((line) => line.g === g)?.fields ?? {});
  for (const { g, fields, into } of lines)
    if (fields !== undefined) yield* contradictions(g, told.compare(fields, { g, tape: tape.id, into }));
    else {
      told.skip(tape.id);
      yield broken(`lineage line ${g}, of '${tape.name}', was changed`);
    }
}
