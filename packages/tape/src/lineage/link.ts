import type { Db } from '../db/db.ts';
import { callColumn, columnText } from '../entry/column-text.ts';
import type { Seq } from '../entry/entry.ts';
import { nameFault, quote } from '../entry/name.ts';
import { parsed } from '../entry/parsed.ts';
import { TapeError } from '../errors.ts';
import type { Writer } from '../tape/append.ts';
import { assertKept, type TapeRow, tapeById } from '../tape/tape.ts';
import { parentInTree } from '../tape/tree.ts';
import type { GraphReceipt } from './line.ts';
import { type LinkRequest, movedEdge, recordLineage } from './outbox.ts';

/** Where a session is in the tree, by its last link. */
interface LinkedTo {
  readonly session: string;
  readonly id: string;
  /** The parent in the tree; null for a root. */
  readonly parent: string | null;
  readonly parentId: string | null;
  readonly type: string;
  readonly derived: boolean;
  readonly evidence?: string;
  readonly call?: string;
  readonly seq?: Seq;
}

/** What a link, or its undo, did. */
export interface LinkReceipt extends LinkedTo, GraphReceipt {
  /** Nothing was written: the edge was there already. */
  readonly repeated: boolean;
  /** Nothing was written: a derived edge does not replace this one, which is not derived. */
  readonly kept: boolean;
}

/** The most characters that a line has of the evidence of an edge. */
const evidenceMax = 500;

/**
 * Puts a session under another one in the tree, or makes it a root, in the caller's transaction. What it inherits stays as
 * it is. The same edge again writes nothing, and neither does a derived edge over one that is not.
 * @throws TAPE_CONFLICT when the parent is the session, or below it; TAPE_BAD_NAME; TAPE_NO_SESSION for a deleted one
 */
export function linkTape(
  writer: Writer,
  tape: TapeRow,
  {
    parent,
    type = movedEdge,
    derived = false,
    evidence,
    call,
    seq,
  }: LinkRequest & { readonly parent: TapeRow | null },
): Omit<LinkReceipt, keyof GraphReceipt> {
  const { db } = writer;
  assertKept(tape, 'link');
  if (parent !== null) assertKept(parent, 'link to');
  const fault = nameFault(type);
  if (fault !== undefined)
    throw new TapeError('TAPE_BAD_NAME', `cannot link '${tape.name}' by an edge ${quote(type)}: ${fault}`, {
      data: { session: tape.name },
    });
  if (seq !== undefined && seq > (parent?.head_seq ?? -1))
    throw new TapeError(
      'TAPE_BAD_POINT',
      `cannot link '${tape.name}' at position ${seq}: ${parent === null ? 'a root has none' : `'${parent.name}' ends at ${parent.head_seq}`}`,
      { data: { session: tape.name } },
    );
  const named = callColumn(call);
  const place = { ...(named !== null && { call: named }), ...(seq !== undefined && { seq }) };
  const cut = evidence === undefined ? undefined : columnText(evidence.slice(0, evidenceMax));
  const wanted: LinkedTo = {
    ...{ session: tape.name, id: tape.ulid, parent: parent?.name ?? null, parentId: parent?.ulid ?? null },
    ...{ type, derived, ...(cut !== undefined && { evidence: cut }), ...place },
  };
  const [now] = linksOf(db, tape);
  const isSame = now !== undefined && JSON.stringify(linkedBy(tape, now)) === JSON.stringify(wanted);
  if (isSame) return { ...wanted, repeated: true, kept: false };
  if (now !== undefined && derived && !now.derived)
    return { ...linkedBy(tape, now), repeated: false, kept: true };
  if (parent !== null) assertNoCircle(db, tape, parent);
  const link = { parent, type, derived, ...(cut !== undefined && { evidence: cut }), ...place };
  recordLineage(writer, tape, { type: 'link', link });
  return { ...wanted, repeated: false, kept: false };
}

/**
 * Takes the last link of a session back, in the caller's transaction: the one before it counts again, or without one the
 * fork. So undoing again does it again.
 * @throws TAPE_CONFLICT when the session has no link, or the edge before it would close a circle by now
 */
export function unlinkTape(writer: Writer, tape: TapeRow): Omit<LinkReceipt, keyof GraphReceipt> {
  const { db } = writer;
  assertKept(tape, 'unlink');
  const [now, before] = linksOf(db, tape);
  if (now === undefined)
    throw new TapeError('TAPE_CONFLICT', `cannot take a link of '${tape.name}' back: none was made of it`, {
      data: { session: tape.name },
    });
  const forked = { parent: tape.parent_id, type: movedEdge, derived: false };
  const { parent: id, ...edge } = before ?? forked;
  const parent = id === null ? null : tapeById(db, id);
  if (parent !== null) assertNoCircle(db, tape, parent);
  recordLineage(writer, tape, { type: 'link', link: { parent, ...edge } });
  const [last = now] = linksOf(db, tape);
  return { ...linkedBy(tape, last), repeated: false, kept: false };
}

/** What a link says of its edge. */
type Edge = Required<Pick<LinkRequest, 'type' | 'derived'>> & Pick<LinkRequest, 'evidence' | 'call' | 'seq'>;

/** A link as its line says it. */
interface LinkLine extends Edge {
  /** The row id of the parent. */
  readonly parent: number | null;
  readonly name: string | null;
  readonly ulid: string | null;
}

/** The last two links of a session, the last one first. */
function linksOf(db: Db, { id }: TapeRow): readonly LinkLine[] {
  return db
    .all<{ peer: number | null; name: string | null; ulid: string | null; line: string }>(
      `SELECT l.peer_id AS peer, p.name, p.ulid, l.line FROM lineage l LEFT JOIN tape p ON p.id = l.peer_id
         WHERE l.tape_id = @id AND l.type = 'link' ORDER BY l.g DESC LIMIT 2`,
      { id },
    )
    .map(({ peer, name, ulid, line }) => ({ parent: peer, name, ulid, ...edgeIn(line) }));
}

/** What a line of a link says of its edge. */
function edgeIn(line: string): Edge {
  const { edge, derived, evidence, call, seq } = parsed(line);
  return {
    type: typeof edge === 'string' ? edge : movedEdge,
    derived: derived === true,
    ...(typeof evidence === 'string' && { evidence }),
    ...(typeof call === 'string' && { call }),
    ...(typeof seq === 'number' && { seq }),
  };
}

function linkedBy(tape: TapeRow, { name, ulid, parent: _, ...edge }: LinkLine): LinkedTo {
  return { session: tape.name, id: tape.ulid, parent: name, parentId: ulid, ...edge };
}

/** Whether a session under a parent would be below itself in the tree. */
export function closesCircle(db: Db, tape: Pick<TapeRow, 'id'>, parent: Pick<TapeRow, 'id'>): boolean {
  const found = db.get(
    `WITH RECURSIVE up (id) AS (
       SELECT @parent UNION SELECT ${parentInTree('t')} FROM up JOIN tape t ON t.id = up.id)
     SELECT 1 FROM up WHERE id = @tape`,
    { parent: parent.id, tape: tape.id },
  );
  return found !== undefined;
}

function assertNoCircle(db: Db, tape: TapeRow, parent: TapeRow): void {
  if (!closesCircle(db, tape, parent)) return;
  const why = parent.id === tape.id ? 'it is the same session' : `'${parent.name}' is below it`;
  throw new TapeError('TAPE_CONFLICT', `cannot put '${tape.name}' under '${parent.name}': ${why}`, {
    data: { session: tape.name, parent: parent.name },
  });
}
