import { shown, span } from './display.ts';
import { distinctNames, type MergeRecord, type SessionNode } from './node.ts';

/** A graph for other programs: sessions, forks from parent to child, merges from child to target. */
interface Drawing {
  /** Name and status by id; a session outside the graph has no status. */
  readonly sessions: ReadonlyMap<string, readonly string[]>;
  readonly edges: readonly {
    readonly from: string;
    readonly to: string;
    readonly label: string;
    readonly merge: boolean;
  }[];
}

/**
 * The graph in the DOT language of Graphviz.
 *
 * @example
 * ```ts
 * import { SessionGraph, toDot } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * const graph = SessionGraph.fromRecords(store.lineage.read());
 * console.log(toDot(graph.list()).split('\n')[0]); // digraph sessions {
 * ```
 */
export function toDot(nodes: Iterable<SessionNode>): string {
  const { sessions, edges } = drawing(nodes);
  const escaped = (text: string) => shown(text).replace(/["\\]/g, '\\$&');
  const quoted = (text: string) => `"${escaped(text)}"`;
  return [
    'digraph sessions {',
    '  node [shape=box];',
    ...Array.from(sessions, ([id, lines]) => `  ${quoted(id)} [label="${lines.map(escaped).join('\\n')}"];`),
    ...edges.map(
      ({ from, to, label, merge }) =>
        `  ${quoted(from)} -> ${quoted(to)} [label=${quoted(label)}${merge ? ', style=dashed' : ''}];`,
    ),
    '}',
    '',
  ].join('\n');
}

/**
 * The graph as a Mermaid flowchart.
 *
 * @example
 * ```ts
 * import { SessionGraph, toMermaid } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * const graph = SessionGraph.fromRecords(store.lineage.read());
 * console.log(toMermaid(graph.list()).split('\n')[0]); // flowchart TD
 * ```
 */
export function toMermaid(nodes: Iterable<SessionNode>): string {
  const { sessions, edges } = drawing(nodes);
  // Ids in a foreign file may be any text, and Mermaid cannot quote ids.
  const names = new Map(Array.from(sessions.keys(), (id, i) => [id, `s${i + 1}`]));
  const quoted = (text: string) =>
    `"${text.replace(/[^\p{L}\p{N} _.:@+%/()·⚓-]/gu, (c) => `#${c.codePointAt(0)};`)}"`;
  return [
    'flowchart TD',
    ...Array.from(sessions, ([id, lines]) => `  ${names.get(id)}[${quoted(lines.join(' · '))}]`),
    ...edges.map(({ from, to, label, merge }) => {
      const arrow = merge ? '-.->' : '-->';
      return `  ${names.get(from)} ${arrow}${label === '' ? '' : `|${quoted(label)}|`} ${names.get(to)}`;
    }),
    '',
  ].join('\n');
}

function drawing(nodes: Iterable<SessionNode>): Drawing {
  const all = distinctNames([...nodes]);
  const sessions = new Map(all.map((node) => [node.id, [shown(node.session), shown(node.status)]]));
  const refer = (id: string, name: string | undefined) => {
    if (!sessions.has(id)) sessions.set(id, [shown(name ?? id)]);
    return id;
  };
  const forks = all.flatMap((node) => {
    if (node.parent === undefined) return [];
    const label = node.fromAnchor === undefined ? '' : `⚓ ${shown(node.fromAnchor)}`;
    return [{ from: refer(node.parent, node.parentName), to: node.id, label, merge: false }];
  });
  const merges = all
    .flatMap(({ merges }) => merges)
    .flatMap((merge) => {
      if (merge.into === undefined) return [];
      return [
        { from: merge.child, to: refer(merge.into, merge.intoName), label: mergeLabel(merge), merge: true },
      ];
    });
  return { sessions, edges: [...forks, ...merges] };
}

function mergeLabel({ type, range }: MergeRecord): string {
  return range === undefined ? type : `${type} ${span(range)}`;
}
