import type { Seq } from '../entry/entry.ts';
import { sha256 } from '../entry/hash.ts';
import { isObject, type Json, type JsonObject } from '../entry/json.ts';
import { cutPart, mergeFrame } from '../merge/block.ts';
import { backMax, collectResult, textVersion } from '../merge/collect.ts';
import type { Db } from '../sqlite/sqlite.ts';
import { segments } from '../tape/interval.ts';
import { type TapeRow, tapeById } from '../tape/tape.ts';
import { type Problem, problemsOf } from './problem.ts';

/** An entry of a merge: its mark, or the message after it. */
interface MergeEntry {
  readonly seq: Seq;
  readonly payload: Json;
  readonly meta: JsonObject;
}

/** The mark of a merge, as far as other entries must agree with it. */
interface Mark {
  readonly seq: Seq;
  readonly key: string;
  readonly state: JsonObject;
  readonly childHead: string;
  readonly range: readonly [Seq, Seq];
}

/**
 * Compares the marks of merges on a tape, up to a position, with the message after each and with the child's own
 * text: one digest for all three. Erased entries are left out; what a caller gave as text has no other source.
 */
export function* verifyMerges(db: Db, tape: TapeRow, to: Seq = tape.head_seq): Generator<Problem> {
  const problem = problemsOf(tape.name);
  const marks = db.all<{ seq: Seq; key: string; payload: string }>(
    `SELECT seq, key, payload FROM entry WHERE tape_id = @id AND key >= 'merge:' AND key < 'merge;'
       AND kind = 'anchor' AND payload IS NOT NULL AND seq <= @to`,
    { id: tape.id, to },
  );
  for (const { seq, key, payload } of marks.toSorted((a, b) => a.seq - b.seq)) {
    const mark = markOf(seq, key, payload);
    const child = mark === undefined ? undefined : tapeByUlid(db, String(mark.state.child));
    const fault =
      mark === undefined
        ? 'has not the form of one'
        : child === undefined
          ? 'names a session that does not exist'
          : faultOf(db, { tape, child, mark });
    if (fault !== undefined)
      yield problem('merge-contradicted', seq, `the mark of a merge ${tape.name}@${seq} ${fault}`);
  }
}

/** Yields the heads of children, as the marks on a tape recorded them, that the children do not have. */
export function* verifyMergedHeads(db: Db, tape: TapeRow): Generator<Problem> {
  const marks = db.all<{ seq: Seq; key: string; payload: string }>(
    `SELECT seq, key, payload FROM entry WHERE tape_id = @id AND key >= 'merge:' AND key < 'merge;'
       AND kind = 'anchor' AND payload IS NOT NULL`,
    { id: tape.id },
  );
  for (const { seq, key, payload } of marks.toSorted((a, b) => a.seq - b.seq)) {
    const mark = markOf(seq, key, payload);
    const child = mark === undefined ? undefined : tapeByUlid(db, String(mark.state.child));
    if (mark === undefined || child === undefined) continue;
    const [, last] = mark.range;
    const problem = problemsOf(child.name);
    const by = `the mark ${tape.name}@${seq} recorded ${mark.childHead.slice(0, 8)}`;
    if (last > child.head_seq)
      yield problem(
        'tail-missing',
        child.head_seq + 1,
        `${child.name} ends at ${child.head_seq}, but it once went on to ${last}; ${by}: its tail was cut off`,
      );
    else if (hashAt(db, child, last) !== mark.childHead)
      yield problem(
        'head-contradicted',
        last,
        `${child.name}@${last} has another hash; ${by}: an entry up to there was rewritten`,
      );
  }
}

function markOf(seq: Seq, key: string, payload: string): Mark | undefined {
  const value: unknown = JSON.parse(payload);
  const state = isObject(value) && isObject(value.state) ? value.state : {};
  const [first, last] = Array.isArray(state.range) ? state.range : [];
  const { child_head: childHead } = state;
  if (typeof first !== 'number' || typeof last !== 'number' || typeof childHead !== 'string')
    return undefined;
  return { seq, key, state, childHead, range: [first, last] };
}

interface Merge {
  readonly tape: TapeRow;
  readonly child: TapeRow;
  readonly mark: Mark;
}

/** Returns what contradicts a mark, in words that follow its name. */
function faultOf(db: Db, { tape, child, mark }: Merge): string | undefined {
  const { state, key, seq } = mark;
  if (!key.startsWith(`merge:${child.ulid}:${mark.childHead}`)) return 'differs from its own key';
  // A head that is not there contradicts the child, and is reported there.
  if (hashAt(db, child, mark.range[1]) !== mark.childHead) return undefined;
  const own =
    state.text_version === textVersion && !erasedSince(db, child, mark)
      ? collectResult(db, child, mark.range)
      : undefined;
  if (own !== undefined && sha256(own.text) !== state.result_digest)
    return `has another digest than the result of ${child.name}@${mark.range[0]}-${mark.range[1]}`;
  if (state.strategy === 'discard') return undefined;
  const message = entryOf(db, tape, seq + 1);
  if (message === undefined) return 'has no message after it';
  if (message.payload === null) return undefined;
  const inner = insideOf(message, { child, mark });
  if (inner === undefined) return `is not followed by its message: ${tape.name}@${seq + 1} is another one`;
  if (sha256(inner) === state.result_digest) return undefined;
  const part = cutPart(inner);
  const isPart =
    part !== undefined &&
    (own === undefined ||
      (own.text.startsWith(part.text) && own.text.length === part.text.length + part.left));
  return isPart ? undefined : `has another digest than the text of its message ${tape.name}@${seq + 1}`;
}

/** Returns the child's text in a merge's message; undefined when the message is not that of the mark. */
function insideOf(
  { payload, meta }: MergeEntry,
  { child, mark }: Pick<Merge, 'child' | 'mark'>,
): string | undefined {
  const { state, childHead } = mark;
  const text = textOf(payload);
  if (text === undefined || meta.source !== 'merge' || meta.child !== child.ulid) return undefined;
  const [before, after] = mergeFrame({
    child: String(state.session),
    source: String(meta.from),
    status: String(state.status),
    partial: state.partial === true,
    childHead,
  });
  if (!text.startsWith(before) || !text.endsWith(after)) return undefined;
  return text.slice(before.length, text.length - after.length);
}

/** Whether an entry that the merge had read was erased after it. */
function erasedSince(db: Db, child: TapeRow, { range: [from, to] }: Mark): boolean {
  return (
    db.get(
      `SELECT 1 FROM entry WHERE tape_id = @id AND mark = 'redaction' AND mark IN ('boundary','rewind','redaction')
         AND seq > @to AND ref BETWEEN @from AND @to LIMIT 1`,
      { id: child.id, from: from - backMax, to },
    ) !== undefined
  );
}

function textOf(payload: Json): string | undefined {
  const [part] = isObject(payload) && Array.isArray(payload.content) ? payload.content : [];
  return isObject(part) && typeof part.text === 'string' ? part.text : undefined;
}

function entryOf(db: Db, tape: TapeRow, seq: Seq): MergeEntry | undefined {
  const row = db.get<{ kind: string; payload: string | null; meta: string | null }>(
    'SELECT kind, payload, meta FROM entry WHERE tape_id = @id AND seq = @seq',
    { id: tape.id, seq },
  );
  if (row?.kind !== 'message') return undefined;
  const meta: unknown = row.meta === null ? {} : JSON.parse(row.meta);
  return {
    seq,
    payload: row.payload === null ? null : (JSON.parse(row.payload) as Json),
    meta: isObject(meta) ? meta : {},
  };
}

/** Returns the hash of an entry that a session reads, in lower-case hex. */
function hashAt(db: Db, tape: TapeRow, seq: Seq): string | undefined {
  const [owner] = segments(db, { id: tape.id, floor_seq: 0 }, seq - 1, seq);
  if (owner === undefined) return undefined;
  return db.get<{ hash: string }>(
    'SELECT lower(hex(hash)) AS hash FROM entry WHERE tape_id = @id AND seq = @seq',
    { id: owner.tapeId, seq },
  )?.hash;
}

function tapeByUlid(db: Db, ulid: string): TapeRow | undefined {
  const row = db.get<{ id: number }>('SELECT id FROM tape WHERE ulid = @ulid', { ulid });
  return row === undefined ? undefined : tapeById(db, row.id);
}
