import { shown, span } from './display.ts';
import {
  distinctNames,
  drawnOrigin,
  edgeText,
  goneTexts,
  type MergeRecord,
  type SessionNode,
  stateOf,
  undoneText,
} from './node.ts';

/** A session in a drawing: its id, and its number from 1. */
interface Place {
  readonly id: string;
  readonly n: number;
}

/** How to draw a graph for other programs. */
interface Notation {
  readonly first: readonly string[];
  session(of: Place, texts: readonly string[]): string;
  edge(from: Place, to: Place, edge: Edge): string;
  readonly last: readonly string[];
}

/** A fork, from parent to child, or a merge, from child to target. */
interface Edge {
  readonly from: string;
  readonly to: string;
  readonly label: string;
  readonly merge: boolean;
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
  return wholeOf(nodes, dotLines);
}

/**
 * The lines of the graph in the DOT language, for a graph that is too large to be held in memory.
 * @param read reads its sessions, each time anew, in parts
 * @param shared names that sessions of different parts have
 *
 * @example
 * ```ts
 * import { dotLines, SessionGraph } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const read = () => store.linesBySession().map((lines) => SessionGraph.fromRecords(lines).list());
 * console.log([...dotLines(read, store.sharedNames())].length); // 5
 * ```
 */
export function dotLines(
  read: () => Iterable<readonly SessionNode[]>,
  shared?: ReadonlySet<string>,
): Generator<string, void, undefined> {
  const escaped = (text: string) => shown(text).replace(/["\\]/g, '\\$&');
  const quoted = (text: string) => `"${escaped(text)}"`;
  return linesIn(read, shared, {
    first: ['digraph sessions {', '  node [shape=box];'],
    session: ({ id }, texts) => `  ${quoted(id)} [label="${texts.map(escaped).join('\\n')}"];`,
    edge: (from, to, { label, merge }) =>
      `  ${quoted(from.id)} -> ${quoted(to.id)} [label=${quoted(label)}${merge ? ', style=dashed' : ''}];`,
    last: ['}', ''],
  });
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
  return wholeOf(nodes, mermaidLines);
}

/**
 * The lines of the graph as a Mermaid flowchart, for a graph that is too large to be held in memory.
 * @param read reads its sessions, each time anew, in parts
 * @param shared names that sessions of different parts have
 *
 * @example
 * ```ts
 * import { mermaidLines, SessionGraph } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const read = () => store.linesBySession().map((lines) => SessionGraph.fromRecords(lines).list());
 * console.log([...mermaidLines(read, store.sharedNames())].length); // 3
 * ```
 */
export function mermaidLines(
  read: () => Iterable<readonly SessionNode[]>,
  shared?: ReadonlySet<string>,
): Generator<string, void, undefined> {
  const quoted = (text: string) =>
    `"${text.replace(/[^\p{L}\p{N} _.:@+%/()·⚓-]/gu, (c) => `#${c.codePointAt(0)};`)}"`;
  return linesIn(read, shared, {
    first: ['flowchart TD'],
    // Ids in a foreign file may be any text, and Mermaid cannot quote ids.
    session: ({ n }, texts) => `  s${n}[${quoted(texts.join(' · '))}]`,
    edge: (from, to, { label, merge }) => {
      const arrow = merge ? '-.->' : '-->';
      return `  s${from.n} ${arrow}${label === '' ? '' : `|${quoted(label)}|`} s${to.n}`;
    },
    last: [''],
  });
}

function wholeOf(nodes: Iterable<SessionNode>, lines: typeof dotLines): string {
  const all = [...nodes];
  return [...lines(() => [all])].join('\n');
}

/** Sessions with their states, then those outside of the graph that edges refer to, then forks, then merges. */
function* linesIn(
  read: () => Iterable<readonly SessionNode[]>,
  shared: ReadonlySet<string> | undefined,
  { first, session, edge, last }: Notation,
): Generator<string, void, undefined> {
  yield* first;
  const numbers = new Map<string, number>();
  const place = (id: string): Place => {
    const n = numbers.get(id) ?? numbers.size + 1;
    numbers.set(id, n);
    return { id, n };
  };
  const outside = { forks: new Map<string, string>(), merges: new Map<string, string>() };
  const refer = (to: Map<string, string>, id: string, name: string | undefined) => {
    if (!numbers.has(id) && !to.has(id)) to.set(id, name ?? id);
  };
  for (const nodes of read())
    for (const node of distinctNames(nodes, shared)) {
      yield session(place(node.id), [shown(node.session), shown(stateOf(node)), ...goneTexts(node)]);
      if (node.parent !== undefined) refer(outside.forks, node.parent, node.parentName);
      for (const { into, intoName } of node.merges)
        if (into !== undefined) refer(outside.merges, into, intoName);
    }
  for (const [id, name] of [...outside.forks, ...outside.merges])
    if (!numbers.has(id)) yield session(place(id), [shown(name)]);
  for (const edgesOf of [forksOf, mergesOf])
    for (const nodes of read())
      for (const one of nodes.flatMap(edgesOf)) yield edge(place(one.from), place(one.to), one);
  yield* last;
}

function forksOf(node: SessionNode): Edge[] {
  const { id, parent } = node;
  if (parent === undefined) return [];
  const { anchor: from, link } = drawnOrigin(node);
  const anchor = from === undefined ? '' : `⚓ ${shown(from)}`;
  const label = link === undefined ? anchor : shown(edgeText(link));
  return [{ from: parent, to: id, label, merge: false }];
}

function mergesOf({ merges }: SessionNode): Edge[] {
  return merges.flatMap((merge) =>
    merge.into === undefined
      ? []
      : [{ from: merge.child, to: merge.into, label: mergeLabel(merge), merge: true }],
  );
}

function mergeLabel(merge: MergeRecord): string {
  const { type, range } = merge;
  return `${range === undefined ? type : `${type} ${span(range)}`}${undoneText(merge)}`;
}
