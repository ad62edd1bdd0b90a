import type { Seq } from '../entry/entry.ts';
import { hex } from '../entry/hash.ts';
import { isUlid, nearNames, quote, tapeName } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import type { Db } from '../file/sqlite.ts';

/** A session: its name, alias, ULID, or a prefix of a ULID that fits one only; tried in this order. */
export type Ref = string;

export type Lifecycle = 'active' | 'archived' | 'destroyed' | 'orphaned' | 'purged';
export type Task = 'running' | 'completed' | 'halted' | 'failed' | 'aborted' | 'timed_out' | 'orphaned';
export type Delivery = 'merged' | 'discarded';

/** What is known of a session without reading its entries. Times are milliseconds since the epoch. */
export interface SessionInfo {
  readonly name: string;
  /** The session's ULID: made once, never changed. */
  readonly id: string;
  readonly tape: string;
  readonly kind: string;
  readonly lifecycle: Lifecycle;
  readonly task?: Task;
  readonly delivery?: Delivery;
  /** The parent's name. */
  readonly parent?: string;
  readonly parentId?: string;
  /** Where the inherited part begins, as it was asked: an anchor's name or `@seq`. */
  readonly fromAnchor?: string;
  readonly mergedAt?: number;
  /** How its result is to come back, of a session that was forked to be delegated to: `merge` say. */
  readonly deliver?: string;
  /** The tool call that asked for it. */
  readonly spawnCall?: string;
  readonly title?: string;
  readonly ephemeral: boolean;
  /** Inherited positions are `(floor, base]`, own ones `(base, head]`. */
  readonly floor: Seq;
  readonly base: Seq;
  readonly head: Seq;
  readonly headHash: string;
  /** The greatest position at which no client-side tool call is open. */
  readonly settled: Seq;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** The kind of the child in which a summary of its parent was written. */
export const summarizerKind = 'summarizer';

/** Whether a session is the record of a summary: it is nobody's work, and nothing of it is to come home. */
export function isSummarizer({ parentId, kind }: Pick<SessionInfo, 'parentId' | 'kind'>): boolean {
  return parentId !== undefined && kind === summarizerKind;
}

/** A row of `tape`, with its parent's name. */
export interface TapeRow {
  readonly id: number;
  readonly ulid: string;
  readonly realm: string;
  readonly name: string;
  readonly incarnation: number;
  readonly kind: string;
  readonly parent_id: number | null;
  readonly spawn_key: string | null;
  readonly request_hash: Uint8Array | null;
  readonly from_seq: number | null;
  readonly from_anchor: string | null;
  readonly floor_seq: number;
  readonly base_seq: number;
  readonly base_hash: Uint8Array;
  readonly head_seq: number;
  readonly head_hash: Uint8Array;
  readonly settled_seq: number;
  readonly epoch: number;
  readonly lifecycle: Lifecycle | 'staging';
  readonly task: Task | null;
  readonly delivery: Delivery | null;
  readonly merged_at: number | null;
  readonly deliver: string | null;
  readonly spawn_call: string | null;
  readonly title: string | null;
  readonly ephemeral: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly parent_name: string | null;
  readonly parent_ulid: string | null;
}

const select = `SELECT t.*, p.name AS parent_name, p.ulid AS parent_ulid
  FROM tape t LEFT JOIN tape p ON p.id = t.parent_id`;

export function tapeById(db: Db, id: number): TapeRow {
  const row = db.get<TapeRow>(`${select} WHERE t.id = @id`, { id });
  if (row === undefined) throw new TapeError('TAPE_CORRUPT', `cannot find tape ${id}: its row is missing`);
  return row;
}

/** The newest incarnation of a name, staging ones too. */
export function tapeByName(db: Db, realm: string, name: string): TapeRow | undefined {
  return db.get<TapeRow>(
    `${select} WHERE t.realm = @realm AND t.name = @name ORDER BY t.incarnation DESC LIMIT 1`,
    { realm, name },
  );
}

/** The session that a reference means; sessions that are still being imported are not found. */
export function findTape(db: Db, realm: string, ref: Ref): TapeRow | undefined {
  const row = lookUp(db, realm, ref);
  return row?.lifecycle === 'staging' ? undefined : row;
}

function lookUp(db: Db, realm: string, ref: Ref): TapeRow | undefined {
  const byName = tapeByName(db, realm, ref);
  if (byName !== undefined) return byName;
  const incarnation = /^(.+)~([1-9]\d*)$/.exec(ref);
  if (incarnation !== null)
    return db.get<TapeRow>(
      `${select} WHERE t.realm = @realm AND t.name = @name AND t.incarnation = @incarnation`,
      { realm, name: incarnation[1] ?? '', incarnation: Number(incarnation[2]) },
    );
  const aliased = db.get<{ tape_id: number }>('SELECT tape_id FROM alias WHERE alias = @ref', { ref });
  if (aliased !== undefined) return tapeById(db, aliased.tape_id);
  const worker = /^worker:(.+)$/.exec(ref);
  const id = worker?.[1] ?? ref;
  if (isUlid(id)) return db.get<TapeRow>(`${select} WHERE t.ulid = @id`, { id });
  if (!/^[0-7][0-9A-HJKMNP-TV-Z]{5,25}$/.test(ref)) return undefined;
  const found = db.all<TapeRow>(`${select} WHERE t.ulid >= @ref AND t.ulid < @end LIMIT 2`, {
    ref,
    end: `${ref}[`,
  });
  return found.length === 1 ? found[0] : undefined;
}

/**
 * The session that a reference means.
 * @throws TAPE_NO_SESSION with the nearest names.
 */
export function needTape(db: Db, realm: string, ref: Ref): TapeRow {
  const row = findTape(db, realm, ref);
  if (row !== undefined) return row;
  const near = nearNames(ref, nameCandidates(db, realm, ref));
  throw new TapeError('TAPE_NO_SESSION', `cannot find session ${quote(ref)}: no such name, alias or id`, {
    data: { session: ref, near },
  });
}

/** Names worth comparing with a mistyped one: a bounded number, so that a typing error costs no full scan. */
function nameCandidates(db: Db, realm: string, ref: string): string[] {
  const rows = db.all<{ name: string }>(
    `SELECT name FROM tape WHERE realm = @realm AND lifecycle NOT IN ('staging', 'purged')
       AND length(name) BETWEEN @length - 12 AND @length + 12 LIMIT 5000`,
    { realm, length: ref.length },
  );
  return rows.map((row) => row.name);
}

/** What `SessionInfo` says of a row. */
type InfoRow = Pick<
  TapeRow,
  | 'ulid'
  | 'realm'
  | 'name'
  | 'incarnation'
  | 'kind'
  | 'lifecycle'
  | 'task'
  | 'delivery'
  | 'parent_name'
  | 'parent_ulid'
  | 'from_anchor'
  | 'merged_at'
  | 'deliver'
  | 'spawn_call'
  | 'title'
  | 'ephemeral'
  | 'floor_seq'
  | 'base_seq'
  | 'head_seq'
  | 'settled_seq'
  | 'created_at'
  | 'updated_at'
> & { readonly head_hash: string };

const selectInfo = `SELECT t.ulid, t.realm, t.name, t.incarnation, t.kind, t.lifecycle, t.task, t.delivery,
  p.name AS parent_name, p.ulid AS parent_ulid, t.from_anchor, t.merged_at, t.deliver, t.spawn_call, t.title, t.ephemeral,
  t.floor_seq, t.base_seq, t.head_seq, t.settled_seq, t.created_at, t.updated_at, lower(hex(t.head_hash)) AS head_hash
  FROM tape t LEFT JOIN tape p ON p.id = t.parent_id`;

export function infoOf(row: TapeRow): SessionInfo {
  return toInfo({ ...row, head_hash: hex(row.head_hash) });
}

function toInfo(row: InfoRow): SessionInfo {
  return {
    name: row.name,
    id: row.ulid,
    tape: tapeName(row.realm, row.name, row.incarnation),
    kind: row.kind,
    lifecycle: row.lifecycle === 'staging' ? 'active' : row.lifecycle,
    ...(row.task !== null && { task: row.task }),
    ...(row.delivery !== null && { delivery: row.delivery }),
    ...(row.parent_name !== null && { parent: row.parent_name }),
    ...(row.parent_ulid !== null && { parentId: row.parent_ulid }),
    ...(row.from_anchor !== null && { fromAnchor: row.from_anchor }),
    ...(row.merged_at !== null && { mergedAt: row.merged_at }),
    ...(row.deliver !== null && { deliver: row.deliver }),
    ...(row.spawn_call !== null && { spawnCall: row.spawn_call }),
    ...(row.title !== null && { title: row.title }),
    ephemeral: row.ephemeral === 1,
    floor: row.floor_seq,
    base: row.base_seq,
    head: row.head_seq,
    headHash: row.head_hash,
    settled: row.settled_seq,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** What the graph shows of a session: delivery, else task, else lifecycle. */
export function graphStatus(row: Pick<TapeRow, 'delivery' | 'task' | 'lifecycle'>): string {
  return row.delivery ?? row.task ?? row.lifecycle;
}

export interface SessionQuery {
  readonly kind?: string;
  readonly lifecycle?: Lifecycle;
  /** Only the children of this session. */
  readonly parent?: Ref;
  /** Also those that are archived, destroyed or ephemeral. */
  readonly all?: boolean;
  /** In the order in which they were made: those after this one, or from the first on with null. */
  readonly after?: Ref | null;
  readonly limit?: number;
}

/** Sessions, the one with the newest entry first; with `parent` or `after`, in the order in which they were made. */
export function listTapes(db: Db, realm: string, query: SessionQuery = {}): SessionInfo[] {
  const idOf = (ref: Ref | null | undefined) => (ref == null ? null : needTape(db, realm, ref).id);
  const parent = idOf(query.parent);
  const after = idOf(query.after);
  const rows = db.all<InfoRow>(
    `${selectInfo} WHERE t.realm = @realm AND t.lifecycle NOT IN ('staging', 'purged')
       AND (@all = 1 OR @lifecycle IS NOT NULL OR (t.lifecycle NOT IN ('archived', 'destroyed') AND t.ephemeral = 0))
       AND (@kind IS NULL OR t.kind = @kind) AND (@lifecycle IS NULL OR t.lifecycle = @lifecycle)
       ${parent === null ? '' : 'AND t.parent_id = @parent'} ${after === null ? '' : 'AND t.id > @after'}
     ORDER BY ${parent === null && query.after === undefined ? 't.updated_at DESC, t.id DESC' : 't.id'} LIMIT @limit`,
    {
      realm,
      all: query.all === true ? 1 : 0,
      kind: query.kind ?? null,
      lifecycle: query.lifecycle ?? null,
      limit: query.limit ?? -1,
      ...(parent !== null && { parent }),
      ...(after !== null && { after }),
    },
  );
  return rows.map(toInfo);
}
