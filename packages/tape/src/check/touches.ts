import type { Db } from '../db/db.ts';
import { patchPaths } from '../entry/artifact.ts';
import type { Seq } from '../entry/entry.ts';
import { isObject, type Json, type JsonObject } from '../entry/json.ts';
import { type Touch, touchesOf } from '../entry/touch.ts';
import type { TapeRow } from '../tape/tape.ts';
import type { BesideTapes } from './beside.ts';
import { type Problem, problemsOf } from './problem.ts';

/** The columns of an entry that touch something, or that bring what a child touched. */
interface TouchingEntry {
  readonly seq: Seq;
  readonly kind: string;
  readonly name: string | null;
  readonly key: string | null;
  readonly meta: string | null;
  readonly payload: string | null;
}

/** What the rows at one position say: whether it was written, by what was touched. */
type Rows = ReadonlyMap<string, boolean>;

/**
 * Compares the rows of `touch` with the entries of a tape, as they go by: what each anchor and tool result touched, and
 * what each merge brought of its child. An erased entry has no rows.
 */
export class TouchesOnTape {
  readonly #db: Db;
  readonly #tape: TapeRow;
  readonly #tapes: BesideTapes;
  /** How many rows a position has; only positions with rows. */
  readonly #counts = new Map<Seq, number>();
  /** Positions of which not all rows are known. */
  readonly #unknown = new Set<Seq>();
  #wrong: string | undefined;

  constructor(db: Db, tape: TapeRow, tapes: BesideTapes) {
    this.#db = db;
    this.#tape = tape;
    this.#tapes = tapes;
  }

  /** Receives the entries of the tape, in order. */
  saw({ seq, kind, name, key, meta, payload }: TouchingEntry): void {
    if (payload === null) return;
    if (kind === 'tool-result' && meta?.includes('"paths":') === true)
      this.#expect(seq, rowsOf(touchesOf({ kind, payload: null, meta: this.#tapes.parsed(meta) })), null);
    else if (kind === 'anchor' && key?.startsWith('merge:') === true) this.#expectMerged(seq, payload);
    else if (kind === 'anchor')
      this.#expect(
        seq,
        rowsOf(touchesOf({ kind, name: name ?? undefined, payload: this.#tapes.parsed(payload) })),
        null,
      );
  }

  #expect(seq: Seq, rows: Rows, via: string | null): void {
    if (rows.size > 0) this.#counts.set(seq, rows.size);
    for (const [what, wrote] of rows) {
      const row = this.#at(seq, what);
      if (row?.via !== via || row.wrote !== Number(wrote))
        this.#wrong ??= `${what} of ${this.#tape.name}@${seq}`;
    }
  }

  #expectMerged(seq: Seq, payload: string): void {
    const { state } = this.#tapes.parsed(payload);
    const child = isObject(state) ? this.#tapes.tapeOf(state.child) : undefined;
    if (!isObject(state) || child === undefined) {
      this.#unknown.add(seq);
      return;
    }
    const rows = broughtBy(this.#db, this.#tapes, { child: child.id, state });
    if (!isErasedIn(this.#db, this.#tapes, { child: child.id, range: boundsOf(state.range) })) {
      this.#expect(seq, rows, child.name);
      return;
    }
    // What erased entries had touched is not known, nor whether they had written it.
    this.#unknown.add(seq);
    for (const what of rows.keys())
      if (this.#at(seq, what)?.via !== child.name) this.#wrong ??= `${what} of ${this.#tape.name}@${seq}`;
  }

  #at(seq: Seq, what: string): { readonly wrote: number; readonly via: string | null } | undefined {
    return this.#db.get('SELECT wrote, via FROM touch WHERE tape_id = @id AND what = @what AND seq = @seq', {
      id: this.#tape.id,
      what,
      seq,
    });
  }

  /** Yields the first difference from the rows, once all entries were seen. */
  *problems(): Generator<Problem> {
    const wrong = this.#wrong ?? this.#surplus();
    if (wrong === undefined) return;
    yield problemsOf(this.#tape.name)(
      'row-changed',
      null,
      `the recorded touches of '${this.#tape.name}' differ from its entries: ${wrong}`,
    );
  }

  /** Returns the place of rows that no entry gives. */
  #surplus(): string | undefined {
    const more = this.#tapes
      .of(this.#tape.id)
      .touches.find(({ seq, n }) => !this.#unknown.has(seq) && n !== (this.#counts.get(seq) ?? 0));
    return more === undefined ? undefined : `those of ${this.#tape.name}@${more.seq}`;
  }
}

const none: Rows = new Map();

/** The rows of touches. SQLite stores no lone surrogates. */
function rowsOf(touches: readonly Touch[]): Rows {
  if (touches.length === 0) return none;
  const rows = new Map<string, boolean>();
  for (const { what, wrote } of touches) {
    const text = what.toWellFormed();
    if (!rows.has(text)) rows.set(text, wrote);
  }
  return rows;
}

/** What a merge brings: what the child touched in its range, then the files of its patch. */
export function broughtBy(
  db: Db,
  tapes: BesideTapes,
  { child, state: { range, strategy, artifact } }: { readonly child: number; readonly state: JsonObject },
): Rows {
  const [from, to] = boundsOf(range);
  // What is beside a tape of the run was read already, and most have no touches.
  const isNone =
    tapes.entries?.of(child) !== undefined &&
    !tapes.of(child).touches.some(({ seq }) => seq >= from && seq <= to);
  const touched = isNone
    ? []
    : db.all<{ what: string; wrote: number }>(
        'SELECT what, max(wrote) AS wrote FROM touch WHERE tape_id = @child AND seq BETWEEN @from AND @to GROUP BY what',
        { child, from, to },
      );
  const files = strategy === 'discard' ? [] : filesOf(artifact);
  return rowsOf([
    ...touched.map(({ what, wrote }) => ({ what, wrote: wrote === 1 })),
    ...files.map((path) => ({ what: `file:${path}`, wrote: true })),
  ]);
}

function isErasedIn(
  db: Db,
  { entries }: BesideTapes,
  { child, range: [from, to] }: { readonly child: number; readonly range: readonly [Seq, Seq] },
): boolean {
  if (isAbsentIn(db, child, [from, to])) return true;
  const kept = entries?.of(child);
  if (kept !== undefined)
    return kept.some(({ mark, ref }) => mark === 'redaction' && ref !== null && ref >= from && ref <= to);
  return (
    db.get(
      `SELECT 1 FROM entry WHERE tape_id = @child AND mark = 'redaction' AND mark IN ('boundary','rewind','redaction')
         AND ref BETWEEN @from AND @to LIMIT 1`,
      { child, from, to },
    ) !== undefined
  );
}

/** Whether a bundle did not bring the content of an entry in a range. */
export function isAbsentIn(db: Db, tape: number, [from, to]: readonly [Seq, Seq]): boolean {
  return (
    db.get('SELECT 1 FROM absent WHERE tape_id = @tape AND seq BETWEEN @from AND @to LIMIT 1', {
      tape,
      from,
      to,
    }) !== undefined
  );
}

function boundsOf(range: Json | undefined): readonly [Seq, Seq] {
  const [from, to] = Array.isArray(range) ? range : [];
  return typeof from === 'number' && typeof to === 'number' ? [from, to] : [0, -1];
}

function filesOf(artifact: Json | undefined): readonly string[] {
  const files = isObject(artifact) && Array.isArray(artifact.files) ? artifact.files : [];
  return patchPaths({
    files: files.flatMap((file: Json) => {
      if (!isObject(file) || typeof file.path !== 'string') return [];
      const { path, from } = file;
      return [{ path, change: 'changed' as const, ...(typeof from === 'string' && { from }) }];
    }),
  });
}
