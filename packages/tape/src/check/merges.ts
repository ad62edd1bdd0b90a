import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { sha256 } from '../entry/hash.ts';
import { isObject, type Json, type JsonObject } from '../entry/json.ts';
import { cutPart, mergeFrame, mergeSource } from '../merge/block.ts';
import { backMax, collectResult, textVersion } from '../merge/collect.ts';
import { segments } from '../tape/interval.ts';
import type { TapeRow } from '../tape/tape.ts';
import { type BesideTapes, isAdopted, type MarkRow } from './beside.ts';
import type { EntryRow } from './kept-entries.ts';
import { type LineOfMerge, type Mark, markOf, mergesInLines } from './marks.ts';
import { factFaults } from './merge-facts.ts';
import { type Problem, problemsOf } from './problem.ts';
import { isReadable } from './readable.ts';
import { isAbsentIn } from './touches.ts';

/** An entry of a merge: its mark, or the message after it. */
interface MergeEntry {
  readonly seq: Seq;
  readonly payload: Json;
  readonly meta: JsonObject;
}

/**
 * Compares the marks of merges on a tape, up to a position, with the message after each and with the child's own
 * text: one digest for all three. Of an erased mark only name and key are compared; what a caller gave as text has no
 * other source.
 */
export function* verifyMerges(
  db: Db,
  tape: TapeRow,
  { tapes, to = tape.head_seq }: { readonly tapes: BesideTapes; readonly to?: Seq },
): Generator<Problem> {
  const problem = problemsOf(tape.name);
  const beside = tapes.of(tape.id);
  const recorded = mergesInLines(tape, beside);
  // Most sessions have no merge.
  if (recorded.size === 0 && beside.marks.length === 0) return;
  const rows = new Map(beside.marks.map((row) => [row.seq, row]));
  const seqs = new Set([...rows.keys(), ...recorded.keys()]);
  for (const seq of [...seqs].filter((one) => one <= to).toSorted((a, b) => a - b)) {
    const row = rows.get(seq) ?? rowAt({ db, tapes, tape }, seq);
    // A copy of a session has the marks without their keys: they say what was, and merge nothing.
    if (row?.key === null && isAdopted(beside, seq)) continue;
    if (row !== undefined && isChildElsewhere({ db, tapes, tape }, row, recorded.get(seq))) {
      yield problem('not-here', seq, `the child of the merge ${tape.name}@${seq} is not here`);
      continue;
    }
    // A missing entry is reported by its chain.
    const fault = row === undefined ? undefined : faultIn({ db, tapes, tape }, row, recorded.get(seq));
    if (fault !== undefined)
      yield problem('merge-contradicted', seq, `the mark of a merge ${tape.name}@${seq} ${fault}`);
  }
}

/** Whether a bundle brought a mark, and not the child that it is of. */
function isChildElsewhere(
  { tapes, tape }: Within,
  { seq, key, payload }: MarkRow,
  recorded: LineOfMerge | undefined,
): boolean {
  if (recorded !== undefined || !isAdopted(tapes.of(tape.id), seq)) return false;
  const [scheme, ulid] = key?.split(':') ?? [];
  const child = payload === null ? undefined : markOf(seq, tapes.parsed(payload))?.state.child;
  return scheme === 'merge' && (child === undefined || child === ulid) && tapes.tapeOf(ulid) === undefined;
}

/** Returns what contradicts an entry that should be a mark. `recorded`: the line of the lineage that names it. */
function faultIn(within: Within, row: MarkRow, recorded: LineOfMerge | undefined): string | undefined {
  const { tapes } = within;
  const [scheme, ulid = '', head] = row.key?.split(':') ?? [];
  if (row.kind !== 'anchor' || row.mark !== 'anchor' || scheme !== 'merge' || head === undefined)
    return 'has not the form of one';
  const mark = row.payload === null ? undefined : markOf(row.seq, tapes.parsed(row.payload));
  if (mark === undefined && row.payload !== null) return 'has not the form of one';
  const child = tapes.tapeOf(mark === undefined ? ulid : String(mark.state.child));
  if (child === undefined) return 'names a session that does not exist';
  // What such a child reads is not known. The missing row is reported of the session that needs it.
  if (tapes.lacksAncestor(child)) return undefined;
  if (mark !== undefined && row.key?.replace(/:\d+$/, '') !== `merge:${child.ulid}:${mark.childHead}`)
    return 'differs from its own key';
  if (recorded !== undefined && recorded.ulid !== child.ulid)
    return 'is of another child than the lineage says';
  const name = nameIn(within, row, child);
  if (row.name !== `merge/${name}` || (mark !== undefined && mark.state.session !== name))
    return `has not the name of its child ${child.name}`;
  if (mark === undefined) return undefined;
  return lineFault(mark, recorded?.fields) ?? faultOf(within, { child, name, mark });
}

/** The name of a child in a mark: where a bundle brought the mark, that which the child has in another home. */
function nameIn({ tapes, tape }: Within, { seq, name }: MarkRow, child: TapeRow): string {
  const [, elsewhere] = /^merge\/(.+)$/s.exec(name ?? '') ?? [];
  return elsewhere !== undefined && isAdopted(tapes.of(tape.id), seq) ? elsewhere : child.name;
}

/** Returns how a mark differs from its line. Lines of schema 1 have no version of the text. */
function lineFault({ state, range }: Mark, line: JsonObject | undefined): string | undefined {
  if (line === undefined) return undefined;
  if (JSON.stringify(range) !== JSON.stringify(line.range ?? null))
    return 'covers another range than the lineage says';
  if ((state.strategy === 'discard') !== (line.type === 'discard'))
    return 'records another act than the lineage';
  if (state.received !== line.received) return 'was received at another position than the lineage says';
  return line.text_version === undefined || line.text_version === state.text_version
    ? undefined
    : 'says of its text another origin than the lineage';
}

/** Yields the heads of children, as the marks on a tape recorded them, that the children do not have. */
export function* verifyMergedHeads(db: Db, tape: TapeRow, tapes: BesideTapes): Generator<Problem> {
  const beside = tapes.of(tape.id);
  for (const { seq, key, payload } of beside.marks) {
    const mark = payload === null || key === null ? undefined : markOf(seq, tapes.parsed(payload));
    const child = mark === undefined ? undefined : tapes.tapeOf(String(mark.state.child));
    if (mark === undefined || child === undefined) continue;
    const [, last] = mark.range;
    const problem = problemsOf(child.name);
    const by = `the mark ${tape.name}@${seq} recorded ${mark.childHead.slice(0, 8)}`;
    if (last > child.head_seq && isAdopted(beside, seq))
      yield problem(
        'not-here',
        child.head_seq + 1,
        `the end of ${child.name} up to ${last} is not here; ${by}`,
      );
    else if (last > child.head_seq)
      yield problem(
        'tail-missing',
        child.head_seq + 1,
        `${child.name} ends at ${child.head_seq}, but it once went on to ${last}; ${by}: its tail was cut off`,
      );
    else if (hashAt(db, tapes, { tape: child, seq: last }) !== mark.childHead)
      yield problem(
        'head-contradicted',
        last,
        `${child.name}@${last} has another hash; ${by}: an entry up to there was rewritten`,
      );
  }
}

interface Merge {
  readonly child: TapeRow;
  /** The name that the child has in the mark. */
  readonly name: string;
  readonly mark: Mark;
}

/** Where the marks of a tape are compared. */
interface Within {
  readonly db: Db;
  readonly tapes: BesideTapes;
  readonly tape: TapeRow;
}

function rowAt({ db, tapes, tape: { id } }: Within, seq: Seq): MarkRow | undefined {
  return (
    tapes.entries?.at(id, seq) ??
    db.get<MarkRow>(
      'SELECT seq, kind, mark, name, key, payload FROM entry WHERE tape_id = @id AND seq = @seq',
      { id, seq },
    )
  );
}

/** Returns what contradicts a mark, in words that follow its name. */
function faultOf({ db, tapes, tape }: Within, { child, name, mark }: Merge): string | undefined {
  const { state, seq } = mark;
  // A head that is not there contradicts the child, and is reported there.
  if (hashAt(db, tapes, { tape: child, seq: mark.range[1] }) !== mark.childHead) return undefined;
  const version = state.text_version ?? null;
  if (version !== null && version !== textVersion)
    return `names unknown rules for its text: ${String(version)}`;
  const kept = tapes.entries?.of(child.id);
  const collected = isUnknown(db, child, { mark, kept })
    ? undefined
    : collectResult(db, child, mark.range, kept);
  const isOwn = collected !== undefined && sha256(collected.text) === state.result_digest;
  if (version !== null && collected !== undefined && !isOwn)
    return `has another digest than the result of ${child.name}@${mark.range[0]}-${mark.range[1]}`;
  const wrong = version === null ? [] : factFaults(tapes, { tape, child, ...mark }, collected);
  if (wrong.length > 0) return `has another ${wrong.join(', ')} than ${child.name}, or its own place, gives`;
  // A given text has no version, nor has a text of schema 1: it is the child's own where it has its digest.
  const own = isOwn ? collected : undefined;
  if (state.strategy === 'discard') return undefined;
  const message = entryOf({ db, tapes, tape }, seq + 1);
  if (message === undefined) return 'has no message after it';
  if (message.payload === null) return undefined;
  const inner = insideOf(message, { child, name, mark });
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
function insideOf({ payload, meta }: MergeEntry, { child, name, mark }: Merge): string | undefined {
  const { state, childHead } = mark;
  const text = textOf(payload);
  const source = mergeSource({ child: name, fromAnchor: child.from_anchor, range: mark.range });
  if (text === undefined || meta.source !== 'merge' || meta.child !== child.ulid) return undefined;
  if (meta.session !== name || meta.from !== source) return undefined;
  const [before, after] = mergeFrame({
    child: name,
    source,
    status: String(state.status),
    partial: state.partial === true,
    childHead,
  });
  if (!text.startsWith(before) || !text.endsWith(after)) return undefined;
  return text.slice(before.length, text.length - after.length);
}

/** Whether an entry that the merge had read was erased after it, or cannot be read. */
function isUnknown(
  db: Db,
  child: TapeRow,
  { mark, kept }: { readonly mark: Mark; readonly kept: readonly EntryRow[] | undefined },
): boolean {
  const [from, to] = [mark.range[0] - backMax, mark.range[1]];
  if (isAbsentIn(db, child.id, [from, to])) return true;
  if (kept !== undefined)
    return kept.some(
      ({ mark: kind, seq, ref, is_readable }) =>
        (kind === 'redaction' && seq > to && ref !== null && ref >= from && ref <= to) ||
        (seq >= from && seq <= to && is_readable === 0),
    );
  return (
    db.get(
      `SELECT 1 FROM entry WHERE tape_id = @id AND mark = 'redaction' AND mark IN ('boundary','rewind','redaction')
         AND seq > @to AND ref BETWEEN @from AND @to
         UNION ALL SELECT 1 FROM entry WHERE tape_id = @id AND seq BETWEEN @from AND @to
           AND NOT ${isReadable} LIMIT 1`,
      { id: child.id, from, to },
    ) !== undefined
  );
}

/** The text of a message of a merge, which is one text of role `user`. */
function textOf(payload: Json): string | undefined {
  if (!isObject(payload) || payload.role !== 'user' || !Array.isArray(payload.content)) return undefined;
  const [part, ...more] = payload.content;
  const isText = isObject(part) && part.type === 'text' && more.length === 0;
  return isText && typeof part.text === 'string' ? part.text : undefined;
}

function entryOf({ db, tapes, tape: { id } }: Within, seq: Seq): MergeEntry | undefined {
  const row =
    tapes.entries?.at(id, seq) ??
    db.get<{ kind: string; payload: string | null; meta: string | null }>(
      'SELECT kind, payload, meta FROM entry WHERE tape_id = @id AND seq = @seq',
      { id, seq },
    );
  if (row?.kind !== 'message') return undefined;
  return {
    seq,
    payload: row.payload === null ? null : tapes.parsed(row.payload),
    meta: tapes.parsed(row.meta ?? '{}'),
  };
}

/** Returns the hash of an entry that a session reads, in lower-case hex. */
function hashAt(
  db: Db,
  { entries }: BesideTapes,
  { tape, seq }: { readonly tape: TapeRow; readonly seq: Seq },
): string | undefined {
  const [owner] = segments(db, { ...tape, floor_seq: 0 }, seq - 1, seq);
  if (owner === undefined) return undefined;
  const kept = entries?.at(owner.tapeId, seq);
  if (kept !== undefined) return kept.hash;
  return db.get<{ hash: string }>(
    'SELECT lower(hex(hash)) AS hash FROM entry WHERE tape_id = @id AND seq = @seq',
    { id: owner.tapeId, seq },
  )?.hash;
}
