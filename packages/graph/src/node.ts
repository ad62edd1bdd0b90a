import type { FamilyLine, LineIntention } from '@tapedeck/tape/store';

/** One `merge` or `discard` line: the range of a child that was merged, and its target. */
export interface MergeRecord {
  readonly type: 'merge' | 'discard';
  /** Number of the line. */
  readonly g: number;
  readonly at: string;
  /** Status of the child after the merge. */
  readonly status: string;
  /** The merged session: its ULID and name. */
  readonly child: string;
  readonly childName: string;
  /** The target session: its ULID, its name, and the position of the merge there. */
  readonly into: string | undefined;
  readonly intoName: string | undefined;
  readonly seq: number | undefined;
  /** Of a merge that an import found: the position at which the target had got the result before. */
  readonly received?: number;
  /** The merged positions of the child, both ends included. */
  readonly range: readonly [number, number] | undefined;
  /** Of a merge that a rewind of its target hides, as lines that a store reads say. A file does not tell. */
  readonly undone?: true;
  readonly parentHead: string | undefined;
  readonly childHead: string | undefined;
}

/** What the edge of a `link` line is, and whether it was concluded from `evidence`. */
export interface LinkRecord {
  readonly type: string;
  readonly derived: boolean;
  readonly evidence: string | undefined;
  /** The call of the parent that started the session, and the position of the parent before it, where a link says them. */
  readonly call: string | undefined;
  readonly seq: number | undefined;
}

/** A session as the lines read so far describe it. */
export interface SessionNode {
  /** ULID of the session. */
  readonly id: string;
  /** Its name. A later incarnation may reuse the name, but not the ULID. */
  readonly session: string;
  readonly tape: string;
  readonly kind: string;
  /** ULID and name of the parent in the tree: that of its last link, or else the session that it was forked from. */
  readonly parent: string | undefined;
  readonly parentName: string | undefined;
  /** Its last link. */
  readonly link: LinkRecord | undefined;
  /** ULID and name of the session that it was forked from, and the anchor where the inherited part begins. */
  readonly origin: string | undefined;
  readonly originName: string | undefined;
  readonly fromAnchor: string | undefined;
  /** The last position before its own entries, and the inherited positions: null for none. */
  readonly base: number | undefined;
  readonly range: readonly [number, number] | null | undefined;
  readonly spawnKey: string | undefined;
  readonly intention: LineIntention | undefined;
  /** The text in the line, which may not be a date. */
  readonly createdAt: string;
  /** Time and number of the last line about this session. */
  readonly updatedAt: string;
  readonly lastG: number;
  /** The status and the fields that determine it; the last line wins for each, but a merge that is undone does not count. */
  readonly status: string;
  readonly lifecycle: string;
  readonly task: string | undefined;
  readonly delivery: string | undefined;
  readonly mergedAt: string | undefined;
  /** The file that it was imported from, where that is gone, as lines that a store reads say. A file does not tell. */
  readonly sourceGone: string | undefined;
  /** Its merges and discards, oldest first. */
  readonly merges: readonly MergeRecord[];
  /** Number of its first line. */
  readonly g: number;
}

/** Creates a node from the first line about a session. Lines of all types have the required fields. */
export function createNode(line: FamilyLine): SessionNode {
  return {
    id: line.session,
    session: line.session_id,
    tape: line.tape,
    kind: line.kind,
    parent: line.parent ?? undefined,
    parentName: line.parent_session_id ?? undefined,
    link: line.type === 'link' ? linkOf(line) : undefined,
    origin: line.type === 'link' ? undefined : (line.parent ?? undefined),
    originName: line.type === 'link' ? undefined : (line.parent_session_id ?? undefined),
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
    sourceGone: line.sourceGone,
    merges: [],
    g: line.g,
  };
}

/** The edge of a `link` line. */
export function linkOf({ edge = 'link', derived, evidence, call, seq }: FamilyLine): LinkRecord {
  return { type: edge, derived: derived === true, evidence, call, seq };
}

/**
 * What a drawing says of where a session comes from. A link that names a place stands for a fork there: it is drawn beside
 * that only where it was concluded.
 */
export function drawnOrigin({
  originName,
  parentName,
  fromAnchor,
  link,
}: Pick<SessionNode, 'originName' | 'parentName' | 'fromAnchor' | 'link'>): {
  readonly name: string | undefined;
  readonly anchor: string | undefined;
  readonly link: LinkRecord | undefined;
} {
  if (link?.seq === undefined) return { name: originName, anchor: fromAnchor, link };
  return { name: parentName, anchor: `@${link.seq}`, link: link.derived ? link : undefined };
}

/** An edge of a link in a drawing: `clear, derived`. */
export function edgeText({ type, derived }: LinkRecord): string {
  return `${type}${derived ? ', derived' : ''}`;
}

/** Returns the node updated by a further line about its session. */
export function updateNode(node: SessionNode, line: FamilyLine): SessionNode {
  const updated = {
    ...node,
    updatedAt: line.at,
    lastG: line.g,
    status: line.status,
    lifecycle: line.lifecycle ?? (line.type === 'archive' ? 'archived' : node.lifecycle),
    task: line.task ?? node.task,
    delivery: line.delivery ?? node.delivery,
  };
  if (line.type !== 'merge' && line.type !== 'discard') return asItCounts(updated);
  return asItCounts({
    ...updated,
    delivery: line.delivery ?? (line.type === 'merge' ? 'merged' : 'discarded'),
    mergedAt: line.type === 'merge' ? line.at : node.mergedAt,
    merges: [...node.merges, mergeOf(line, line.type)],
  });
}

/** A node whose merges are all undone as it was before them: lines repeat the delivery that an earlier one recorded. */
function asItCounts(node: SessionNode): SessionNode {
  const { delivery, merges, task, lifecycle } = node;
  const made = merges.filter(({ type }) => type === 'merge');
  if (delivery !== 'merged' || made.length === 0 || made.some(({ undone }) => undone !== true)) return node;
  return { ...node, status: task ?? lifecycle, delivery: undefined, mergedAt: undefined };
}

/** Whether a session was deleted, or purged: its ULID alone finds it. */
export function isDeleted({ lifecycle }: Pick<SessionNode, 'lifecycle'>): boolean {
  return lifecycle === 'destroyed' || lifecycle === 'purged';
}

/** How the task of a merged session ended, if it did not complete: `failed`, `halted`, … */
export function failureOf({ status, task }: SessionNode): string | undefined {
  return status === 'merged' && task !== 'completed' && task !== 'running' ? task : undefined;
}

/** The state of a session for people: `merged, failed` of one that was merged and did not complete. */
export function stateOf(node: SessionNode): string {
  const failure = failureOf(node);
  return failure === undefined ? node.status : `${node.status}, ${failure}`;
}

function mergeOf(line: FamilyLine, type: MergeRecord['type']): MergeRecord {
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
    ...(line.received !== undefined && { received: line.received }),
    range: line.range ?? undefined,
    ...(line.undone === true && { undone: true }),
    parentHead: line.parent_head,
    childHead: line.child_head,
  };
}

/** What a drawing says of a session whose source is gone: the tape is what is left of it. */
export function goneTexts({ sourceGone }: SessionNode): readonly string[] {
  return sourceGone === undefined ? [] : ['source gone'];
}

/** What a drawing says behind a merge. */
export function undoneText({ undone }: MergeRecord): string {
  return undone === true ? ' (undone)' : '';
}

function isMerge(line: FamilyLine): boolean {
  return line.type === 'merge' || line.type === 'discard';
}

/**
 * The nodes as a picture names them: sessions of one name, of several realms or incarnations, have the names of their
 * tapes. Deleted ones have no name, but their ULIDs, and are no more than deleted.
 * @param shared names that sessions outside of the nodes have, too
 */
export function distinctNames(
  nodes: readonly SessionNode[],
  shared: ReadonlySet<string> = new Set(),
): readonly SessionNode[] {
  const named = nodes.filter((node) => !isDeleted(node));
  const byName = Map.groupBy(named, ({ session }) => session);
  const same = named.filter(({ session }) => shared.has(session) || (byName.get(session)?.length ?? 0) > 1);
  if (same.length === 0 && named.length === nodes.length) return nodes;
  const others = new Map([
    ...same.map(({ id, tape }) => [id, tape] as const),
    ...nodes.filter(isDeleted).map(({ id }) => [id, id] as const),
  ]);
  const nameOf = (id: string | undefined) => others.get(id ?? '');
  return nodes.map((node) => ({
    ...node,
    ...(isDeleted(node) && {
      status: node.lifecycle === 'purged' ? 'purged' : 'deleted',
      sourceGone: undefined,
    }),
    session: nameOf(node.id) ?? node.session,
    parentName: nameOf(node.parent) ?? node.parentName,
    originName: nameOf(node.origin) ?? node.originName,
    merges: node.merges.map((merge) => ({
      ...merge,
      childName: nameOf(merge.child) ?? merge.childName,
      intoName: nameOf(merge.into) ?? merge.intoName,
    })),
  }));
}
