import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { isObject, type JsonObject } from '../entry/json.ts';
import { parsed } from '../entry/parsed.ts';
import { TapeError } from '../errors.ts';
import type { LineageLine } from '../lineage/line.ts';
import { parseLine } from '../lineage/read.ts';
import type { OnProgress } from '../progress.ts';
import { summarizerKind } from '../tape/info.ts';
import { isReadable } from './readable.ts';

/** The sessions of a store, and those of them that an audit has to examine. */
export interface LooseEnds {
  /** The number of all sessions. */
  readonly sessions: number;
  /** Those with loose ends, in the order of creation. */
  readonly found: readonly { readonly id: string; readonly session: string }[];
}

const pageTapes = 100;

/**
 * Finds the sessions with a sign of work that is not finished, or of a fork or merge that only a tape or only the lineage
 * records. A session without one has nothing that an audit reports; of one with a sign, the audit finds out. Reads all
 * sessions page by page, with two statements for each page, in place of several statements for each session.
 */
export function looseEnds(db: Db, onProgress?: OnProgress): LooseEnds {
  const { total } = db.get<{ total: number }>('SELECT count(*) AS total FROM tape') ?? { total: 0 };
  const ends = new Ends();
  for (let [after, done] = [-Infinity, 0]; ; ) {
    const tapes = db.all<TapeSigns>(`${selectSigns} WHERE t.id > @after ORDER BY t.id LIMIT @limit`, {
      after,
      limit: pageTapes,
    });
    const last = tapes.at(-1);
    if (last === undefined) break;
    ends.lookAll(
      tapes,
      db.all<Edge>(`${selectEdges} AND l.tape_id > @after AND l.tape_id <= @last`, { after, last: last.id }),
    );
    done += tapes.length;
    onProgress?.({ done, total: Math.max(done, total) });
    after = last.id;
  }
  return { sessions: ends.sessions, found: named(db, ends.found()) };
}

/** The same of some tapes. Those whose counterparts are other tapes have loose ends: an audit finds out. */
export function looseEndsIn(db: Db, ids: readonly number[]): LooseEnds {
  const ends = new Ends();
  const wanted = new Set(ids);
  const sorted = [...wanted].sort((a, b) => a - b);
  for (let at = 0; at < sorted.length; at += pageTapes) {
    const page = { ids: JSON.stringify(sorted.slice(at, at + pageTapes)) };
    ends.lookAll(
      db.all<TapeSigns>(
        `${selectSigns} WHERE t.id IN (SELECT CAST(value AS BIGINT) FROM json_each(@ids)) ORDER BY t.id`,
        page,
      ),
      db.all<Edge>(
        `${selectEdges} AND l.tape_id IN (SELECT CAST(value AS BIGINT) FROM json_each(@ids))`,
        page,
      ),
    );
  }
  const found = ends.found().filter((id) => wanted.has(id));
  return { sessions: ends.sessions, found: named(db, found) };
}

function named(db: Db, ids: readonly number[]): LooseEnds['found'] {
  return ids.flatMap((id) => db.all<Named>(selectNamed, { id }));
}

interface Named {
  readonly id: string;
  readonly session: string;
}

const selectNamed = `SELECT ulid AS id, name AS session FROM tape WHERE id = @id AND lifecycle NOT IN ('staging','purged')`;

/** How many of its last entries an audit reads to find the message of the last run. */
const backMax = 50;

/** The kinds of entries that a merge delivers. */
const mergeable = `('message','tool-result','result','anchor')`;

/** What the row of a tape, and the rows beside it, say. */
interface TapeSigns {
  readonly id: number;
  readonly ulid: string;
  readonly name: string;
  readonly base: Seq;
  readonly head: Seq;
  /** Whether an audit examines the session. */
  readonly isAudited: number;
  /** Something is open, was refused, failed last, or cannot be read. */
  readonly isOpen: number;
  readonly parent: string | null;
  readonly isMerged: number;
  /** Its work has to be in its parent. */
  readonly isOwed: number;
  /** Number of the marks of merges on the tape. */
  readonly marks: number;
  readonly startKind: string | null;
  readonly startName: string | null;
  readonly startPayload: string | null;
}

const isDelegated = '(t.deliver IS NOT NULL OR t.task IS NOT NULL)';

const selectSigns = `SELECT t.id, t.ulid, t.name, t.base_seq AS base, t.head_seq AS head,
  t.lifecycle NOT IN ('staging','purged') AS isAudited,
  (t.settled_seq <> t.head_seq OR coalesce(t.task, '') = 'running'
    OR EXISTS (SELECT 1 FROM open_run WHERE tape_id = t.id) OR EXISTS (SELECT 1 FROM stream_chunk WHERE tape_id = t.id)
    OR EXISTS (SELECT 1 FROM lease WHERE tape_id = t.id) OR EXISTS (SELECT 1 FROM inbox WHERE tape_id = t.id)
    OR EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND name IN ('merge/refused','inbox/refused'))
    OR EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND name = 'run/error' AND seq > t.head_seq - ${backMax})
    OR EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND seq > t.head_seq - ${backMax} AND NOT ${isReadable})
    OR EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND seq BETWEEN t.base_seq + 1 AND t.base_seq + 2
      AND t.parent_id IS NOT NULL AND NOT ${isReadable})) AS isOpen,
  p.ulid AS parent, coalesce(t.delivery, '') = 'merged' AS isMerged,
  CASE WHEN p.id IS NULL OR t.delivery = 'discarded' THEN false
    WHEN ${isDelegated} THEN t.kind <> '${summarizerKind}' AND NOT (coalesce(t.deliver, '') = 'notify' AND t.task IS NOT NULL)
    ELSE t.lifecycle = 'active'
      AND EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND seq = t.base_seq + 2 AND kind = 'anchor' AND name = 'intention')
      AND EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND seq > t.base_seq + 2 AND kind IN ${mergeable}) END AS isOwed,
  (SELECT count(*) FROM entry WHERE tape_id = t.id AND name >= 'merge/' AND name < 'merge0' AND kind = 'anchor') AS marks,
  s.kind AS startKind, s.name AS startName, s.payload AS startPayload
  FROM tape t LEFT JOIN tape p ON p.id = t.parent_id AND p.id < t.id
    LEFT JOIN entry s ON s.tape_id = t.id AND s.seq = t.base_seq + 1 AND s.seq <= t.head_seq AND t.parent_id IS NOT NULL`;

/** A line of the lineage that makes an edge, with what it should agree with. */
interface Edge {
  /** The tape that the line is about: the child. */
  readonly tape: number;
  readonly type: string;
  readonly g: number;
  readonly line: string;
  readonly seq: Seq | null;
  readonly to: Seq | null;
  /** The tape that received a merge. */
  readonly target: number | null;
  readonly into: string | null;
  readonly markName: string | null;
  readonly markPayload: string | null;
  /** The hash of the child's entry at the end of the range. */
  readonly hash: string | null;
  /** A rewind may hide the mark. */
  readonly isHidden: number;
  /** The child has more to deliver than the merge did. */
  readonly isGrown: number;
}

const selectEdges = `SELECT l.tape_id AS tape, l.type, l.g, l.line, l.seq, l.to_seq AS "to", q.id AS target, q.ulid AS "into",
  m.name AS markName, m.payload AS markPayload, lower(hex(x.hash)) AS hash,
  EXISTS (SELECT 1 FROM entry WHERE tape_id = q.id AND mark = 'rewind' AND mark IN ('boundary','rewind','redaction')
    AND seq > l.seq) AS isHidden,
  EXISTS (SELECT 1 FROM entry WHERE tape_id = x.tape_id AND seq > l.to_seq
    AND (kind IN ${mergeable} OR NOT ${isReadable})) AS isGrown
  FROM lineage l LEFT JOIN tape q ON q.id = l.peer_id AND l.type <> 'fork' AND q.lifecycle <> 'staging'
    LEFT JOIN entry m ON m.tape_id = q.id AND m.seq = l.seq AND m.seq > q.base_seq AND m.seq <= q.head_seq
      AND m.kind = 'anchor' AND ${readable('m')}
    LEFT JOIN entry x ON x.tape_id = l.tape_id AND x.seq = l.to_seq AND l.type <> 'fork' AND ${readable('x')}
  WHERE l.type IN ('fork','merge','discard') AND l.g > 0`;

function readable(of: string): string {
  return isReadable.replaceAll(/\b(payload|meta)\b/g, `${of}.$1`);
}

/** Collects the tapes with loose ends. */
class Ends {
  sessions = 0;
  readonly #found = new Set<number>();
  /** Marks of merges less the lines that agree with one, by tape, where these numbers differ. */
  readonly #unmatched = new Map<number, number>();

  /** Looks at some tapes, and at the lines that are about them. */
  lookAll(tapes: readonly TapeSigns[], edges: readonly Edge[]): void {
    const byTape = Map.groupBy(edges, ({ tape }) => tape);
    for (const tape of tapes) this.#look(tape, byTape.get(tape.id) ?? []);
  }

  #look(tape: TapeSigns, edges: readonly Edge[]): void {
    this.#count(tape.id, tape.marks);
    const lines = edges.map((edge) => ({ edge, line: lineOf(edge) }));
    const forks = lines.filter(({ edge }) => edge.type === 'fork');
    const merges = lines.filter(({ edge }) => edge.type !== 'fork');
    const agreeing = merges.filter(({ edge, line }) => line !== undefined && agrees(tape, edge, line));
    for (const { edge } of agreeing) if (edge.target !== null) this.#count(edge.target, -1);
    if (tape.isAudited === 0) return;
    this.sessions += 1;
    const isDelivered =
      tape.isMerged === 1 &&
      agreeing.some(({ edge }) => edge.type === 'merge' && edge.isHidden === 0 && edge.isGrown === 0);
    const isPlain =
      tape.isOpen === 0 &&
      isForkRecorded(
        tape,
        forks.map(({ line }) => line),
      ) &&
      agreeing.length === merges.length &&
      (tape.isOwed === 0 || isDelivered);
    if (!isPlain) this.#found.add(tape.id);
  }

  /** The ids of the tapes with loose ends, in order. */
  found(): readonly number[] {
    return [...this.#found.union(this.#unmatched)].sort((a, b) => a - b);
  }

  #count(tape: number, marks: number): void {
    const left = (this.#unmatched.get(tape) ?? 0) + marks;
    if (left === 0) this.#unmatched.delete(tape);
    else this.#unmatched.set(tape, left);
  }
}

/** Returns a line that has the form of one, and the type of the column beside it. */
function lineOf({ g, line, type }: Edge): LineageLine | undefined {
  try {
    const found = parseLine(g, line);
    return found.type === type ? found : undefined;
  } catch (error) {
    if (error instanceof TapeError) return undefined;
    throw error;
  }
}

/** Whether the one line of a fork names the parent that its tape begins with, and a root has none. */
function isForkRecorded(
  { parent, startKind, startName, startPayload }: TapeSigns,
  lines: readonly (LineageLine | undefined)[],
): boolean {
  if (parent === null) return lines.length === 0;
  const [line] = lines;
  if (lines.length !== 1 || line === undefined) return false;
  const isStart = startKind === 'anchor' && startName === 'fork/start';
  const named = startPayload === null ? parent : parsed(startPayload).parent;
  return isStart && typeof named === 'string' && named === line.parent;
}

/** Whether the line of a merge or discard agrees with its columns, with the mark on the target, and with the child. */
function agrees({ ulid, name, base, head }: TapeSigns, edge: Edge, line: LineageLine): boolean {
  const { markPayload, markName, hash, type } = edge;
  if (markPayload === null || markName !== `merge/${name}`) return false;
  if (line.into !== edge.into || line.seq !== edge.seq) return false;
  const { state } = parsed(markPayload);
  if (!isObject(state)) return false;
  return isOf(state, { ulid, line, type }) && covers(state, { base, head, hash, to: edge.to });
}

function isOf(
  { child, child_head, range, strategy }: JsonObject,
  { ulid, line, type }: { readonly ulid: string; readonly line: LineageLine; readonly type: string },
): boolean {
  return (
    child === ulid &&
    child_head === line.child_head &&
    JSON.stringify(range) === JSON.stringify(line.range) &&
    (strategy === 'discard') === (type === 'discard')
  );
}

/** Whether a mark covers positions that the child has, up to the head that the mark names. */
function covers(
  { range, child_head }: JsonObject,
  { base, head, hash, to }: Pick<TapeSigns, 'base' | 'head'> & Pick<Edge, 'hash' | 'to'>,
): boolean {
  const [first, last] = Array.isArray(range) ? range : [];
  if (typeof first !== 'number' || typeof last !== 'number') return false;
  return first > base && first <= last && last <= head && last === to && child_head === hash;
}
