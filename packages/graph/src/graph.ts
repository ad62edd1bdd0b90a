import type { LineageLine } from '@tapedeck/tape';
import { quote } from './display.ts';
import { GraphError } from './errors.ts';
import { type Folding, foldLine, startFold } from './fold.ts';
import { ancestorsOf, type LineageStep, rootsOf, subtreeOf } from './lineage.ts';
import type { MergeRecord, SessionNode } from './node.ts';
import { GraphSource, noSkips, type Skips } from './source.ts';

/** A session's name, `name~n` for its n-th incarnation, an alias, its ULID, or the beginning of one ULID. */
export type SessionRef = string;

/** The origin's five fields of a session (B10), with its names. */
export interface SessionMetadata {
  readonly session_id: string;
  readonly parent_session_id: string | null;
  readonly from_anchor: string | null;
  readonly created_at: string;
  readonly status: string;
}

/** Which sessions `list` gives: those that match all that is named. */
export interface ListFilter {
  readonly lifecycle?: string | undefined;
  readonly kind?: string | undefined;
  readonly parent?: SessionRef | undefined;
}

/**
 * Who came from where: the sessions of a graph file and their edges, in memory, read only (B9). `parent`,
 * `metadata`, `children` and `list` are the origin's `get_parent`, `get_metadata`, `get_children` and
 * `list_sessions`; forking and setting a status need the store and are the runtime's.
 *
 * `find`, `parent`, `status` and `metadata` answer an unknown reference with undefined; the others need the
 * session and throw GRAPH_NO_SESSION. No line of any file makes them throw, or walk in a circle.
 */
export class SessionGraph {
  readonly #source: GraphSource | undefined;
  #folding: Folding = startFold();
  #skips: Skips = noSkips;

  private constructor(source: GraphSource | undefined) {
    this.#source = source;
  }

  /** The graph of records that are in memory. */
  static fromRecords(records: Iterable<LineageLine>): SessionGraph {
    const graph = new SessionGraph(undefined);
    for (const record of records) foldLine(graph.#folding, record);
    return graph;
  }

  /** @see openSessionGraph */
  static open(path: string): SessionGraph {
    const graph = new SessionGraph(new GraphSource(path));
    graph.reload();
    return graph;
  }

  /**
   * Reads what was appended to the file since it was read, or all of it if it is no longer the same file.
   * @returns how many records that were.
   * @throws GRAPH_UNREADABLE
   */
  reload(): number {
    if (this.#source === undefined) return 0;
    const { folding, added, skips } = this.#source.read(this.#folding);
    this.#folding = folding;
    this.#skips = skips;
    return added;
  }

  /** The session of a reference. Of sessions that had one name after the other, the name means the latest. */
  find(ref: SessionRef): SessionNode | undefined {
    const matches = this.#matches(ref);
    return matches.length === 1 ? matches[0] : undefined;
  }

  /** The session that a session came from; undefined for a root. */
  parent(ref: SessionRef): SessionNode | undefined {
    const id = this.find(ref)?.parent;
    return id === undefined ? undefined : this.#folding.nodes.get(id);
  }

  /** The sessions that came from a session, in spawn order. */
  children(ref: SessionRef): SessionNode[] {
    const ids = this.#folding.children.get(this.#need(ref).id) ?? [];
    return ids.flatMap((id) => this.#folding.nodes.get(id) ?? []);
  }

  /** The sessions that a session came from, nearest first. */
  ancestors(ref: SessionRef): SessionNode[] {
    return ancestorsOf(this.#folding, this.#need(ref));
  }

  /** All that came from a session, each before its children, in spawn order. */
  descendants(ref: SessionRef): SessionNode[] {
    return this.subtree(ref)
      .slice(1)
      .map(({ node }) => node);
  }

  /** A session and all that came from it, each before its children, with its depth below the session. */
  subtree(ref: SessionRef): LineageStep[] {
    return [...subtreeOf(this.#folding, this.#need(ref))];
  }

  /** A session's whole line of descent: its root first, down to it, and then all that came from it. */
  lineage(ref: SessionRef): LineageStep[] {
    const node = this.#need(ref);
    const above = ancestorsOf(this.#folding, node).reverse();
    const path = above.map((ancestor, depth) => ({ depth, node: ancestor, last: true }));
    return [...path, ...subtreeOf(this.#folding, node, above.length)];
  }

  /** All sessions, or those that match, in the order in which they became known. */
  list({ lifecycle, kind, parent }: ListFilter = {}): SessionNode[] {
    const parentId = parent === undefined ? undefined : (this.find(parent)?.id ?? null);
    return [...this.#folding.nodes.values()].filter(
      (node) =>
        (lifecycle === undefined || node.lifecycle === lifecycle) &&
        (kind === undefined || node.kind === kind) &&
        (parentId === undefined || node.parent === parentId),
    );
  }

  /** The sessions without a parent in this graph, oldest first. */
  roots(): SessionNode[] {
    return rootsOf(this.#folding);
  }

  /** A session's status, as its last line has it (D515). */
  status(ref: SessionRef): string | undefined {
    return this.find(ref)?.status;
  }

  /** The origin's five fields of a session. */
  metadata(ref: SessionRef): SessionMetadata | undefined {
    const node = this.find(ref);
    return (
      node && {
        session_id: node.session,
        parent_session_id: node.parentName ?? null,
        from_anchor: node.fromAnchor ?? null,
        created_at: node.createdAt,
        status: node.status,
      }
    );
  }

  /** All merges and discards, oldest first, or those that a session took part in, as child or as target. */
  merges(ref?: SessionRef): MergeRecord[] {
    const id = ref === undefined ? undefined : this.#need(ref).id;
    return [...this.#folding.nodes.values()]
      .flatMap((node) => node.merges)
      .filter(({ child, into }) => id === undefined || child === id || into === id)
      .sort((a, b) => a.g - b.g);
  }

  /** How many lines were not used, and why; `dangling` ones were, but refer to a session that is not told of. */
  get skipped(): Skips & { readonly dangling: number } {
    return { ...this.#skips, dangling: this.#folding.dangling };
  }

  #matches(ref: SessionRef): SessionNode[] {
    const { nodes, names, aliases } = this.#folding;
    const start = ref.replace(/^worker:/, '').toUpperCase();
    // A session's own id first, so that no name in a file from elsewhere can stand before it.
    const exact = nodes.get(ref) ?? nodes.get(names.get(ref) ?? aliases.get(ref) ?? start);
    if (exact !== undefined) return [exact];
    if (start === '') return [];
    return [...nodes.values()].filter(({ id }) => id.startsWith(start));
  }

  #need(ref: SessionRef): SessionNode {
    const matches = this.#matches(ref);
    const [node] = matches;
    if (node !== undefined && matches.length === 1) return node;
    const why = node === undefined ? 'no such session' : `${matches.length} sessions begin with it`;
    throw new GraphError('GRAPH_NO_SESSION', `cannot find session ${quote(ref)} in the graph: ${why}`, {
      data: { ref, matches: matches.slice(0, 10).map(({ id }) => id) },
    });
  }
}

/**
 * Reads a graph file (B13). No file is an empty graph. Torn, unknown and bad lines are passed over and
 * counted in `skipped`.
 * @throws GRAPH_UNREADABLE when there is something else at the path, or it cannot be read.
 */
export function openSessionGraph(path: string): SessionGraph {
  return SessionGraph.open(path);
}
