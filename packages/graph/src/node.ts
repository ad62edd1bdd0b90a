import type { LineageLine, LineIntention } from '@tapedeck/tape';

/** What one `merge` or `discard` line tells: what of a child was brought where. */
export interface MergeRecord {
  readonly type: 'merge' | 'discard';
  /** The line's number. */
  readonly g: number;
  readonly at: string;
  /** The child's status as the merge left it. */
  readonly status: string;
  /** The session that was merged: its ULID and name. */
  readonly child: string;
  readonly childName: string;
  /** The session that it went into: its ULID, its name, and the position of the merge there. */
  readonly into: string | undefined;
  readonly intoName: string | undefined;
  readonly seq: number | undefined;
  /** The child's positions that were brought, both ends included. */
  readonly range: readonly [number, number] | undefined;
  readonly parentHead: string | undefined;
  readonly childHead: string | undefined;
}

/** A session as the lines up to now describe it. */
export interface SessionNode {
  /** The session's ULID. */
  readonly id: string;
  /** Its name. Names may come back in a later incarnation; the ULID does not. */
  readonly session: string;
  readonly tape: string;
  readonly kind: string;
  /** Where it came from: the parent's ULID and name, and the anchor that what it inherits begins at. */
  readonly parent: string | undefined;
  readonly parentName: string | undefined;
  readonly fromAnchor: string | undefined;
  /** The position of the parent after which its own begin, and the positions it inherits: null for none. */
  readonly base: number | undefined;
  readonly range: readonly [number, number] | null | undefined;
  readonly spawnKey: string | undefined;
  readonly intention: LineIntention | undefined;
  /** As the line has it: it may not be a date. */
  readonly createdAt: string;
  /** Time and number of the last line about this session. */
  readonly updatedAt: string;
  readonly lastG: number;
  /** The last line wins, for the status and each of what it is computed from. */
  readonly status: string;
  readonly lifecycle: string;
  readonly task: string | undefined;
  readonly delivery: string | undefined;
  readonly mergedAt: string | undefined;
  /** How it was merged or discarded, oldest first. */
  readonly merges: readonly MergeRecord[];
  /** The number of the line that made the session known. */
  readonly g: number;
}

/** The node that a first line about a session makes. Every line carries enough for one. */
export function createNode(line: LineageLine): SessionNode {
  return {
    id: line.session,
    session: line.session_id,
    tape: line.tape,
    kind: line.kind,
    parent: line.parent ?? undefined,
    parentName: line.parent_session_id ?? undefined,
    fromAnchor: line.from_anchor ?? undefined,
    base: line.base,
    range: isMerge(line) ? undefined : line.range,
    spawnKey: line.spawn_key,
    intention: line.intention,
    createdAt: line.created_at,
    updatedAt: line.at,
    lastG: line.g,
    status: line.status,
    lifecycle: 'active',
    task: undefined,
    delivery: undefined,
    mergedAt: undefined,
    merges: [],
    g: line.g,
  };
}

/** The node after one more line about its session. */
export function updateNode(node: SessionNode, line: LineageLine): SessionNode {
  const told = {
    ...node,
    updatedAt: line.at,
    lastG: line.g,
    status: line.status,
    lifecycle: line.lifecycle ?? (line.type === 'archive' ? 'archived' : node.lifecycle),
    task: line.task ?? node.task,
    delivery: line.delivery ?? node.delivery,
  };
  if (line.type !== 'merge' && line.type !== 'discard') return told;
  return {
    ...told,
    delivery: line.delivery ?? (line.type === 'merge' ? 'merged' : 'discarded'),
    mergedAt: line.type === 'merge' ? line.at : node.mergedAt,
    merges: [...node.merges, mergeOf(line, line.type)],
  };
}

function mergeOf(line: LineageLine, type: MergeRecord['type']): MergeRecord {
  return {
    type,
    g: line.g,
    at: line.at,
    status: line.status,
    child: line.session,
    childName: line.session_id,
    into: line.into ?? line.parent ?? undefined,
    intoName: line.into_session_id ?? line.parent_session_id ?? undefined,
    seq: line.seq,
    range: line.range ?? undefined,
    parentHead: line.parent_head,
    childHead: line.child_head,
  };
}

function isMerge(line: LineageLine): boolean {
  return line.type === 'merge' || line.type === 'discard';
}
