import { type LineOptions, lineOf } from './drawn-line.ts';
import { cellsOf, paint } from './lanes.ts';
import { type LayoutOptions, layOut, type PictureRow } from './layout.ts';
import type { SessionNode } from './node.ts';

/** Options of a drawing. */
export interface DrawOptions extends LayoutOptions, LineOptions {}

/**
 * Draws sessions as trees, newest first: the tree with the newest activity, and so the children of each session.
 * Each session is one row with its kind, its status, its merges and its origin. `○` is open, `●` merged, and `×` ended
 * in another way; `failed` and the like behind a merge is how the task of the session ended. A row has at most 40 lanes; `…` stands for those to the left of them.
 *
 * @example
 * ```ts
 * import { drawGraph, SessionGraph } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'plan' });
 * store.lineage.merge('plan');
 * store.lineage.fork('main', { name: 'idea' });
 * const graph = SessionGraph.fromRecords(store.lineage.read());
 * console.log(drawGraph(graph.list()).join('\n'));
 * // ○  main active
 * // ├─○  idea [subagent] active, from main 1-3
 * // ╰─●  plan [subagent] merged 2-2 → main@2, from main 1-1
 * ```
 */
export function drawGraph(nodes: Iterable<SessionNode>, options: DrawOptions = {}): string[] {
  return Array.from(layOut(nodes, options), (row) => drawRow(row, options));
}

/**
 * Draws one row of a layout. A quarter of the width is for lanes, at most.
 *
 * @example
 * ```ts
 * import { drawRow, layOut, SessionGraph } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * for (const name of ['main', 'notes']) store.sessions.open(name);
 * const graph = SessionGraph.fromRecords(store.lineage.read());
 * for (const row of layOut(graph.list())) console.log(drawRow(row, { width: 10 }));
 * // ○  notes …
 * // ○  main a…
 * ```
 */
export function drawRow(row: PictureRow, options: LineOptions = {}): string {
  const { color = false, width } = options;
  const cells = cellsOf(row, width === undefined ? undefined : Math.max(2, Math.floor(width / 8)));
  const line = lineOf(`${cells.join('')} `, row, options);
  return color ? paint(line, cells) : line;
}
