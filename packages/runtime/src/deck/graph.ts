import type { SessionGraph } from '@tapedeck/graph';
import type { Lifecycle, Point, TapeStore } from '@tapedeck/tape';
import type { Awaitable } from '@tapedeck/tape/store';

type Reads = Pick<
  SessionGraph,
  | 'find'
  | 'parent'
  | 'children'
  | 'ancestors'
  | 'descendants'
  | 'lineage'
  | 'roots'
  | 'subtree'
  | 'list'
  | 'status'
  | 'metadata'
  | 'merges'
  | 'skipped'
>;

/**
 * The lineage of a deck. Reads use the graph file alone, which does not say which merges were undone; changes go through
 * the store, which writes the file.
 *
 * @example
 * ```ts
 * import { openDeck } from '@tapedeck/runtime';
 *
 * await using deck = await openDeck({ home: '.tape' });
 * await deck.session('main');
 * await deck.graph.fork('main');
 * console.log(deck.graph.children('main').length); // 1
 * ```
 */
export interface DeckGraph extends Reads {
  /** Forks a session from an anchor and returns the child's name. */
  fork(parent: string, fromAnchor?: Point): Promise<string>;
  /** Sets the lifecycle of a session: active, archived, destroyed or purged. */
  setStatus(session: string, lifecycle: Lifecycle): Promise<void>;
}

/** Opens the graph of a home. Without a file, as with a store in memory, reads find nothing. */
export async function openDeckGraph(store: TapeStore, file: string | undefined): Promise<DeckGraph> {
  const { SessionGraph } = await import('@tapedeck/graph');
  const graph = file === undefined ? SessionGraph.fromRecords([]) : SessionGraph.open(file);
  const fresh = (): SessionGraph => {
    graph.reload();
    return graph;
  };
  return {
    find: (ref) => fresh().find(ref),
    parent: (ref) => fresh().parent(ref),
    children: (ref) => fresh().children(ref),
    ancestors: (ref) => fresh().ancestors(ref),
    descendants: (ref) => fresh().descendants(ref),
    lineage: (ref) => fresh().lineage(ref),
    roots: () => fresh().roots(),
    subtree: (ref) => fresh().subtree(ref),
    list: (filter) => fresh().list(filter),
    status: (ref) => fresh().status(ref),
    metadata: (ref) => fresh().metadata(ref),
    merges: (ref) => fresh().merges(ref),
    get skipped() {
      return fresh().skipped;
    },
    fork: async (parent, fromAnchor) =>
      (await store.lineage.fork(parent, fromAnchor === undefined ? {} : { inherit: { since: fromAnchor } }))
        .session,
    setStatus: async (session, lifecycle) => {
      await (store.sessions.update(session, { lifecycle }) satisfies Awaitable<unknown>);
    },
  };
}
