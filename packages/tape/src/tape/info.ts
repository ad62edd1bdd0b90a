import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { hex } from '../entry/hash.ts';
import { isObject } from '../entry/json.ts';
import { tapeName } from '../entry/name.ts';
import { parsed } from '../entry/parsed.ts';
import { goneFileIn, sourceGoneEvent } from '../entry/source-gone.ts';
import { renamedEvent, titleEvent, titleIn, titleLine } from '../entry/title.ts';
import { type Delivery, hasNames, type Lifecycle, type TapeRow, type Task } from './tape.ts';
import { childrenInTree, linkOf } from './tree.ts';
import { isUndone } from './undone.ts';

/** The state of a session, without its entries. Times are milliseconds since the epoch. */
export interface SessionInfo {
  /** The name of the session. */
  readonly session: string;
  /** The session's ULID; it never changes. */
  readonly id: string;
  readonly tape: string;
  readonly kind: string;
  readonly lifecycle: Lifecycle;
  readonly task?: Task;
  readonly delivery?: Delivery;
  /** Of a merged session: a rewind of the session that received it hides each of its merges, as an undo does. */
  readonly undone?: true;
  /** The parent's name. */
  readonly parent?: string;
  readonly parentId?: string;
  /** Its place in the tree, where a link has given it another one than the fork. */
  readonly link?: SessionLink;
  /** Start of the inherited part, as requested: an anchor's name or `@seq`. */
  readonly fromAnchor?: string;
  readonly mergedAt?: number;
  /** How the parent receives the result of a delegated child, e.g. `merge`. */
  readonly deliver?: string;
  /** Id of the tool call that requested the session, as its fork or its link says. */
  readonly spawnCall?: string;
  /**
   * The title of its last rename, else the one that its source got after it was imported, else the one that it was created with, else the one that a model wrote for it later; where the query requests titles,
   * else the beginning of its first prompt, or of its task.
   */
  readonly title?: string;
  /** The file that it was imported from, where an import found that it is gone: the tape is then what is left of it. */
  readonly sourceGone?: string;
  /** Other names of the session, in the order of their characters. */
  readonly aliases: readonly string[];
  readonly ephemeral: boolean;
  /** Inherited positions are `(floor, base]`, own ones `(base, head]`. */
  readonly floor: Seq;
  readonly base: Seq;
  readonly head: Seq;
  readonly headHash: string;
  /** The greatest position at which no client-side tool call is open. */
  readonly settled: Seq;
  /** Its last run has no recorded end: a process runs it, or died during it. Absent otherwise. */
  readonly openRun?: true;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The latest time of a message of its own: at its source, where it was imported. Absent without one. */
  readonly lastMessageAt?: number;
  /**
   * How many messages of its own its conversation has: each message that a user, an agent or a merge sent, and each
   * answer. An answer with its tool calls is one, however many model calls it took. Those that a rewind hides count too.
   */
  readonly messageCount: number;
  /** Only where the query requests them. */
  readonly counts?: SessionCounts;
}

/** Where a link has put a session in the tree, and what the edge is. */
export interface SessionLink {
  /** Name and ULID of the parent in the tree; absent for a root. */
  readonly parent?: string;
  readonly parentId?: string;
  /** What the edge is: `clear`, `moved`, … */
  readonly type: string;
  /** No record names the edge: it was concluded from `evidence`. */
  readonly derived?: true;
  readonly evidence?: string;
  /** Id of the call of the parent that started the session, and the position of the parent before its message. */
  readonly call?: string;
  readonly seq?: Seq;
}

/** What a session has: its children, and the calls of its own entries. */
export interface SessionCounts {
  /** Its children, without the writers of its summaries. */
  readonly children: number;
  /** Those of the children that are neither merged, discarded nor archived; one whose merge is undone is not merged. */
  readonly openChildren: number;
  readonly mergedChildren: number;
  /** All tokens of its own model calls: input, output, reasoning, and those of caches. */
  readonly tokens: number;
}

/** The columns of `SessionInfo`. */
export type InfoRow = Pick<
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
  | 'last_message_at'
  | 'message_count'
> & {
  readonly head_hash: string;
  readonly aliases: string;
  readonly open_run: number;
  readonly undone: number;
  /** The line of its last link. */
  readonly link: string | null;
  /** The payload of the event that names it. */
  readonly title_event: string | null;
  /** The payload of the event of its last rename. */
  readonly renamed_event: string | null;
  /** The payload of the last event that says whether its source is there. */
  readonly gone_event: string | null;
  /** The payload of its first prompt or of its intention as JSON, or the beginning of its text, where that is large. */
  readonly first_text?: string | null;
  /** Its children by state as JSON. */
  readonly children?: string;
  readonly tokens?: number;
};

/** What the tables beside the row of a tape have of it. A run that saved a part of its answer is open. */
const besideTape = `
  (SELECT json_group_array(alias) FROM (SELECT alias FROM alias WHERE tape_id = t.id ORDER BY alias)) AS aliases,
  EXISTS (SELECT 1 FROM open_run WHERE tape_id = t.id)
    OR EXISTS (SELECT 1 FROM stream_chunk WHERE tape_id = t.id) AS open_run,
  ${lastEvent(titleEvent)} AS title_event, ${lastEvent(renamedEvent)} AS renamed_event,
  ${lastEvent(sourceGoneEvent)} AS gone_event,
  coalesce(${isUndone('t')}, false) AS undone, ${linkOf('t.id')} AS link`;

/** The payload of the last event of a name on a tape. */
export function lastEvent(name: string, tape = 't.id'): string {
  return `(SELECT payload FROM entry WHERE tape_id = ${tape} AND name = '${name}' AND kind = 'event'
    ORDER BY seq DESC LIMIT 1)`;
}

/**
 * Number of a session's own first entries among which its first prompt is looked for: an import has many records before
 * it that are no messages.
 */
const firstMax = 100;

/** The most bytes of a payload that is parsed for the beginning of its text; of a larger one SQLite returns the beginning. */
const parsedMax = 16_384;

/** The payload at a place as JSON, or the beginning of a text in it, if it is large. */
function briefly(text: string): string {
  return `CASE WHEN octet_length(payload) <= ${parsedMax} THEN payload
    WHEN json_valid(payload) THEN json_quote(substr(${text}, 1, 1000)) END`;
}

const firstPart = `(SELECT part.value ->> '$.text' FROM json_each(payload, '$.content') part
  WHERE part.type = 'object' AND part.value ->> '$.type' = 'text' LIMIT 1)`;

/** Whether a user typed a message as a prompt: it is of no merge or skill, and no command of an imported agent. */
export const isTyped: string = `(meta IS NULL OR instr(meta, '"isMeta":true') = 0 AND instr(meta, '"localCommand":') = 0
  AND instr(meta, '"source":"merge"') = 0)`;

/** The first prompt of a session, or its intention. What the store writes of a message begins with its role. */
const firstText = `CASE WHEN t.title IS NULL THEN coalesce(
    (SELECT ${briefly(firstPart)} FROM entry
      WHERE tape_id = t.id AND seq <= t.base_seq + ${firstMax} AND kind = 'message'
        AND substr(payload, 1, 15) = '{"role":"user",' AND ${isTyped} ORDER BY seq LIMIT 1),
    (SELECT ${briefly("payload ->> '$.state.next_steps'")} FROM entry
      WHERE tape_id = t.id AND name = 'intention' ORDER BY seq LIMIT 1)) END`;

/** Kind of a child that wrote a summary of its parent. */
export const summarizerKind = 'summarizer';

/** The children of a session that are not deleted by what became of them, in one pass, without the writers of its summaries. */
const childStates = `SELECT json_group_object(state, n) FROM (SELECT count(*) AS n, CASE
      WHEN c.delivery = 'merged' AND NOT ${isUndone('c')} THEN 'merged'
      WHEN c.lifecycle = 'active' AND c.delivery IS DISTINCT FROM 'discarded' THEN 'open'
      ELSE 'others' END AS state
    FROM tape c WHERE c.id IN (${childrenInTree('t.id')}) AND c.kind <> '${summarizerKind}'
      AND c.lifecycle <> 'staging' AND c.${hasNames} GROUP BY state)`;

/** All tokens of the calls of a tape `t`, whatever their kind: `totalOf` of its usage. */
export const tokensOfTape: string =
  '(SELECT coalesce(sum(input + output + reasoning + cache_read + cache_write), 0) FROM usage WHERE tape_id = t.id)';

/** What a session has: its children and its tokens, each by an index. */
const countsOf = `(${childStates}) AS children, ${tokensOfTape} AS tokens`;

const infoColumns = ` t.ulid, t.realm, t.name, t.incarnation, t.kind, t.lifecycle, t.task, t.delivery,
  p.name AS parent_name, p.ulid AS parent_ulid, t.from_anchor, t.merged_at, t.deliver, t.spawn_call, t.title, t.ephemeral,
  t.floor_seq, t.base_seq, t.head_seq, t.settled_seq, t.created_at, t.updated_at, t.last_message_at, t.message_count, lower(hex(t.head_hash)) AS head_hash,
  ${besideTape}`;

/** The statement that reads sessions, with what a caller wants beside their rows. */
export function selectInfo({
  counts,
  titles,
}: {
  readonly counts?: boolean;
  readonly titles?: boolean;
}): string {
  const more = `${counts === true ? `, ${countsOf}` : ''}${titles === true ? `, ${firstText} AS first_text` : ''}`;
  return `SELECT ${infoColumns}${more}
    FROM tape t LEFT JOIN tape p ON p.id = t.parent_id AND p.id < t.id`;
}

/** What the tables beside the row of a tape have of it. */
export type Beside = Pick<
  InfoRow,
  'aliases' | 'open_run' | 'title_event' | 'renamed_event' | 'gone_event' | 'undone' | 'link'
>;

export function besideOf(db: Db, { id }: Pick<TapeRow, 'id'>): Beside | undefined {
  return db.get<Beside>(`SELECT ${besideTape} FROM tape t WHERE t.id = @id`, { id });
}

export function infoOf(db: Db, row: TapeRow, beside: Beside | undefined = besideOf(db, row)): SessionInfo {
  return toInfo({
    ...row,
    head_hash: hex(row.head_hash),
    aliases: '[]',
    open_run: 0,
    title_event: null,
    renamed_event: null,
    gone_event: null,
    undone: 0,
    link: null,
    ...beside,
  });
}

export function toInfo(row: InfoRow): SessionInfo {
  const title =
    eventTitle(row.renamed_event) ??
    importTitle(row.title_event) ??
    row.title ??
    eventTitle(row.title_event) ??
    titleLine(beginningOf(row.first_text ?? null));
  const sourceGone = goneFileIn(parsed(row.gone_event));
  const link = row.link === null ? undefined : linkIn(row.link);
  const spawnCall = link?.call ?? row.spawn_call;
  return {
    session: row.name,
    id: row.ulid,
    tape: tapeName(row.realm, row.name, row.incarnation),
    kind: row.kind,
    lifecycle: row.lifecycle === 'staging' ? 'active' : row.lifecycle,
    ...(row.task !== null && { task: row.task }),
    ...(row.delivery !== null && { delivery: row.delivery }),
    ...(row.undone === 1 && { undone: true as const }),
    ...(row.parent_name !== null && { parent: row.parent_name }),
    ...(row.parent_ulid !== null && { parentId: row.parent_ulid }),
    ...(link !== undefined && { link }),
    ...(row.from_anchor !== null && { fromAnchor: row.from_anchor }),
    ...(row.merged_at !== null && { mergedAt: row.merged_at }),
    ...(row.deliver !== null && { deliver: row.deliver }),
    ...(spawnCall !== null && { spawnCall }),
    ...(title !== undefined && { title }),
    ...(sourceGone !== undefined && { sourceGone }),
    aliases: JSON.parse(row.aliases) as string[],
    ephemeral: row.ephemeral === 1,
    floor: row.floor_seq,
    base: row.base_seq,
    head: row.head_seq,
    headHash: row.head_hash,
    settled: row.settled_seq,
    ...(row.open_run === 1 && { openRun: true as const }),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    ...(row.last_message_at !== null && { lastMessageAt: row.last_message_at }),
    messageCount: row.message_count,
    ...(row.children !== undefined && { counts: countsIn(row.children, row.tokens) }),
  };
}

/** The link that a line of the lineage records. */
function linkIn(line: string): SessionLink {
  const { parent, parent_session_id: name, edge, derived, evidence, call, seq } = parsed(line);
  return {
    ...(typeof name === 'string' && { parent: name }),
    ...(typeof parent === 'string' && { parentId: parent }),
    type: String(edge),
    ...(derived === true && { derived: true as const }),
    ...(typeof evidence === 'string' && { evidence }),
    ...(typeof call === 'string' && { call }),
    ...(typeof seq === 'number' && { seq }),
  };
}

/** Name and ULID of the parent of a session in the tree; of a root neither. */
export function treeParentOf({
  parent,
  parentId,
  link,
}: Pick<SessionInfo, 'parent' | 'parentId' | 'link'>): Pick<SessionLink, 'parent' | 'parentId'> {
  const { parent: name, parentId: id } = link ?? { parent, parentId };
  return { ...(name !== undefined && { parent: name }), ...(id !== undefined && { parentId: id }) };
}

/** Where a session left its parent. */
export interface SessionOrigin extends Pick<SessionInfo, 'parent' | 'parentId' | 'fromAnchor'> {
  /** The last position of the parent before it. */
  readonly at: Seq;
}

/** Where a session left its parent, as its fork says, or a link that names a place. */
export function originOf({
  parent,
  parentId,
  fromAnchor,
  base,
  link,
}: Pick<SessionInfo, 'parent' | 'parentId' | 'fromAnchor' | 'base' | 'link'>): SessionOrigin {
  const isLinked = link?.seq !== undefined;
  const [name, id] = isLinked ? [link.parent, link.parentId] : [parent, parentId];
  const anchor = isLinked ? `@${link.seq}` : fromAnchor;
  return {
    ...(name !== undefined && { parent: name }),
    ...(id !== undefined && { parentId: id }),
    ...(anchor !== undefined && { fromAnchor: anchor }),
    at: link?.seq ?? base,
  };
}

function eventTitle(payload: string | null): string | undefined {
  return payload === null ? undefined : titleIn(parsed(payload));
}

/** The title that the source of an import got after the session was created. */
function importTitle(payload: string | null): string | undefined {
  const said = parsed(payload);
  return said.source === 'import' ? titleIn(said) : undefined;
}

function countsIn(children: string, tokens = 0): SessionCounts {
  const {
    merged = 0,
    open = 0,
    others = 0,
  } = JSON.parse(children) as { readonly merged?: number; readonly open?: number; readonly others?: number };
  return { children: merged + open + others, openChildren: open, mergedChildren: merged, tokens };
}

/** What became of a session's work, as the session that received it reads now: nothing, where its merges are undone. */
export function deliveryOf<T extends string>({
  delivery,
  undone,
}: {
  readonly delivery?: T | undefined;
  readonly undone?: true;
}): T | undefined {
  return undone === true ? undefined : delivery;
}

/** The text at the beginning of a prompt or of a task. */
function beginningOf(json: string | null): string {
  const { content, state, text } = parsed(json?.startsWith('"') === true ? `{"text":${json}}` : json);
  const first = Array.isArray(content)
    ? content.find((part) => isObject(part) && part.type === 'text')
    : undefined;
  const found = text ?? (isObject(first) ? first.text : isObject(state) ? state.next_steps : undefined);
  return typeof found === 'string' ? found : '';
}

/** Returns whether a session only records how a summary was made. It has no result to merge. */
export function isSummarizer({ parentId, kind }: Pick<SessionInfo, 'parentId' | 'kind'>): boolean {
  return parentId !== undefined && kind === summarizerKind;
}
