import { patchPaths } from '../entry/artifact.js';
                                             
import { isObject,                            } from '../entry/json.js';
import { parsed } from '../entry/parsed.js';
import {             touchesOf } from '../entry/touch.js';
                                              
                                               
                                               
import {               problemsOf } from './problem.js';

/** The columns of an entry that touch something, or that bring what a child touched. */
                         
                    
                        
                               
                              
                               
                                  
 

/** What the rows at one position say: whether it was written, by what was touched. */
                                         

/**
 * Compares the rows of `touch` with the entries of a tape, as they go by: what each anchor and tool result touched, and
 * what each merge brought of its child. An erased entry has no rows.
 */
export class TouchesOnTape {
           #db    ;
           #tape         ;
           #tapes             ;
  /** How many rows a position has; only positions with rows. */
           #counts = new Map             ();
  /** Positions of which not all rows are known. */
           #unknown = new Set     ();
  #wrong                    ;

  constructor(db    , tape         , tapes             ) {
    this.#db = db;
    this.#tape = tape;
    this.#tapes = tapes;
  }

  /** Receives the entries of the tape, in order. */
  saw({ seq, kind, name, key, meta, payload }               )       {
    if (payload === null) return;
    if (kind === 'tool-result' && meta?.includes('"paths":') === true)
      this.#expect(seq, rowsOf(touchesOf({ kind, payload: null, meta: parsed(meta) })), null);
    else if (kind === 'anchor' && key?.startsWith('merge:') === true) this.#expectMerged(seq, payload);
    else if (kind === 'anchor')
      this.#expect(seq, rowsOf(touchesOf({ kind, name: name ?? undefined, payload: parsed(payload) })), null);
  }

  #expect(seq     , rows      , via               )       {
    if (rows.size > 0) this.#counts.set(seq, rows.size);
    for (const [what, wrote] of rows) {
      const row = this.#at(seq, what);
      if (row?.via !== via || row.wrote !== Number(wrote))
        this.#wrong ??= `${what} of ${this.#tape.name}@${seq}`;
    }
  }

  #expectMerged(seq     , payload        )       {
    const { state } = parsed(payload);
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

  #at(seq     , what        )                                                                      {
    return this.#db.get('SELECT wrote, via FROM touch WHERE tape_id = @id AND what = @what AND seq = @seq', {
      id: this.#tape.id,
      what,
      seq,
    });
  }

  /** Yields the first difference from the rows, once all entries were seen. */
  *problems()                     {
    const wrong = this.#wrong ?? this.#surplus();
    if (wrong === undefined) return;
    yield problemsOf(this.#tape.name)(
      'row-changed',
      null,
      `the recorded touches of '${this.#tape.name}' differ from its entries: ${wrong}`,
    );
  }

  /** Returns the place of rows that no entry gives. */
  #surplus()                     {
    const more = this.#tapes
      .of(this.#tape.id)
      .touches.find(({ seq, n }) => !this.#unknown.has(seq) && n !== (this.#counts.get(seq) ?? 0));
    return more === undefined ? undefined : `those of ${this.#tape.name}@${more.seq}`;
  }
}

/** The rows of touches. SQLite stores no lone surrogates. */
function rowsOf(touches                  )       {
  const rows = new Map                 ();
  for (const { what, wrote } of touches) {
    const text = what.toWellFormed();
    if (!rows.has(text)) rows.set(text, wrote);
  }
  return rows;
}

/** What a merge brings: what the child touched in its range, then the files of its patch. */
function broughtBy(
  db    ,
  tapes             ,
  { child, state: { range, strategy, artifact } }                                                        ,
)       {
  const [from, to] = boundsOf(range);
  // What is beside a tape of the run was read already, and most have no touches.
  const isNone =
    tapes.entries?.of(child) !== undefined &&
    !tapes.of(child).touches.some(({ seq }) => seq >= from && seq <= to);
  const touched = isNone
    ? []
    : db.all                                 (
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
  db    ,
  { entries }             ,
  { child, range: [from, to] }                                                                 ,
)          {
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

function boundsOf(range                  )                      {
  const [from, to] = Array.isArray(range) ? range : [];
  return typeof from === 'number' && typeof to === 'number' ? [from, to] : [0, -1];
}

function filesOf(artifact                  )                    {
  const files = isObject(artifact) && Array.isArray(artifact.files) ? artifact.files : [];
  return patchPaths({
    files: files.flatMap((file      ) => {
      if (!isObject(file) || typeof file.path !== 'string') return [];
      const { path, from } = file;
      return [{ path, change: 'changed'         , ...(typeof from === 'string' && { from }) }];
    }),
  });
}
