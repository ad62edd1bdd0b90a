import type { FamilyLine } from '@tapedeck/tape/store';
import { quote } from './display.ts';
import { GraphError } from './errors.ts';
import { type Folding, foldLine, startFold } from './fold.ts';
import { ancestorsOf, type LineageStep, rootsOf, subtreeOf } from './lineage.ts';
import { isDeleted, type MergeRecord, type SessionNode } from './node.ts';
import { GraphSource, noSkips, type Skips } from './source.ts';

/**
 * A session name, `name~n` for its n-th incarnation, an alias, a ULID, or an unambiguous prefix of a ULID. A deleted
 * session has its ULID alone.
 */
export type SessionRef = string;

/** Five fields of a session, under their names in the graph file. */
export interface SessionMetadata {
  readonly session_id: string;
  readonly parent_session_id: string | null;
  readonly from_anchor: string | null;
  readonly created_at: string;
  readonly status: string;
}

/** A filter of `list`: sessions match all given fields. */
export interface ListFilter {
  readonly lifecycle?: string | undefined;
  readonly kind?: string | undefined;
  readonly parent?: SessionRef | undefined;
}

/**
 * The sessions of a graph file and the edges between them, in memory and read-only.
 *
 * `find`, `parent`, `status` and `metadata` return undefined for an unknown reference; the other methods
 * throw GRAPH_NO_SESSION. No content of a file makes a method throw or loop.
 *
 * @example
 * ```ts
 * import { SessionGraph } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * const graph = SessionGraph.fromRecords(store.lineage.read());
 * console.log(graph.children('main').map(({ session }) => session)); // [ 'idea' ]
 * console.log(graph.parent('idea')?.session, graph.status('idea')); // main active
 * ```
 */
export class SessionGraph {
  readonly #source: GraphSource | undefined;
  #folding: Folding = startFold();
  #skips: Skips = noSkips;

  private constructor(source: GraphSource | undefined) {
    this.#source = source;
  }

  /** Makes a graph from records in memory. */
  static fromRecords(records: Iterable<FamilyLine>): SessionGraph {
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
   * Reads the lines appended since the last read, or the whole file if it was replaced.
   * @returns the number of records read
   * @throws GRAPH_UNREADABLE
   */
  reload(): number {
    if (this.#source === undefined) return 0;
    const { folding, added, skips } = this.#source.read(this.#folding);
    this.#folding = folding;
    this.#skips = skips;
    return added;
  }

  /** The session that a reference matches. A name refers to its latest incarnation that was not deleted. */
  find(ref: SessionRef): SessionNode | undefined {
    const matches = this.#matches(ref);
    return matches.length === 1 ? matches[0] : undefined;
  }

  /** The parent of a session; undefined for a root. */
  parent(ref: SessionRef): SessionNode | undefined {
    const id = this.find(ref)?.parent;
    return id === undefined ? undefined : this.#folding.nodes.get(id);
  }

  /** The children of a session, in spawn order. */
  children(ref: SessionRef): SessionNode[] {
    const ids = this.#folding.children.get(this.#need(ref).id) ?? [];
    return ids.flatMap((id) => this.#folding.nodes.get(id) ?? []);
  }

  /** The ancestors of a session, nearest first. */
  ancestors(ref: SessionRef): SessionNode[] {
    return ancestorsOf(this.#folding, this.#need(ref));
  }

  /** The descendants of a session, each before its children, in spawn order. */
  descendants(ref: SessionRef): SessionNode[] {
    return this.subtree(ref)
      .slice(1)
      .map(({ node }) => node);
  }

  /** A session and its descendants, each before its children, with its depth below the session. */
  subtree(ref: SessionRef): LineageStep[] {
    return [...subtreeOf(this.#folding, this.#need(ref))];
  }

  /** The ancestors of a session, root first, then the session and its descendants. */
  lineage(ref: SessionRef): LineageStep[] {
    const node = this.#need(ref);
    const above = ancestorsOf(this.#folding, node).reverse();
    const path = above.map((ancestor, depth) => ({ depth, node: ancestor, last: true }));
    return [...path, ...subtreeOf(this.#folding, node, above.length)];
  }

  /** All sessions, or those that match the filter, in the order of their first lines. */
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

  /** The status in the last line of a session. */
  status(ref: SessionRef): string | undefined {
    return this.find(ref)?.status;
  }

  /** Five fields of a session, under their names in the graph file. */
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

  /** All merges and discards, oldest first, or those with a given session as child or target. */
  merges(ref?: SessionRef): MergeRecord[] {
    const id = ref === undefined ? undefined : this.#need(ref).id;
    return [...this.#folding.nodes.values()]
      .flatMap((node) => node.merges)
      .filter(({ child, into }) => id === undefined || child === id || into === id)
      .sort((a, b) => a.g - b.g);
  }

  /** Number of skipped lines by reason. `dangling` lines are used, but refer to an unknown session. */
  get skipped(): Skips & { readonly dangling: number } {
    return { ...this.#skips, dangling: this.#folding.dangling };
  }

  #matches(ref: SessionRef): SessionNode[] {
    const { nodes, names, aliases } = this.#folding;
    const start = ref.replace(/^worker:/, '').toUpperCase();
    // Ids match first, so that no name in a foreign file can hide a session.
    const exact = nodes.get(ref) ?? nodes.get(names.get(ref) ?? aliases.get(ref) ?? start);
    if (exact !== undefined) return [exact];
    if (start === '') return [];
    return [...nodes.values()].filter((node) => node.id.startsWith(start) && !isDeleted(node));
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
 * Reads a graph file. A missing file is an empty graph. Torn, unknown and malformed lines are skipped and
 * counted in `skipped`.
 * @throws GRAPH_UNREADABLE when the path is not a regular file, or cannot be read
 *
 * @example
 * ```ts
 * import { openSessionGraph } from '@tapedeck/graph';
 * import { openJournal } from '@tapedeck/graph/journal';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore('.tape/tape.db', { journal: openJournal('.tape/session_graph.jsonl') });
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * console.log(openSessionGraph('.tape/session_graph.jsonl').roots().length); // 1
 * ```
 */
export function openSessionGraph(path: string): SessionGraph {
  return SessionGraph.open(path);
}
