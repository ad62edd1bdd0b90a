import type { LineOptions, SessionGraph, SessionNode } from '@tapedeck/graph';
import type { Context } from '../context.ts';
import { cutText } from '../terminal/width.ts';
import { linkJson, stateOf } from './session.ts';

/** A session with its descendants, nested. */
export function treeJson(graph: SessionGraph, node: SessionNode): Readonly<Record<string, unknown>> {
  return {
    session: node.session,
    id: node.id,
    kind: node.kind,
    status: node.status,
    lifecycle: node.lifecycle,
    ...(node.task !== undefined && { task: node.task }),
    ...(node.delivery !== undefined && { delivery: node.delivery }),
    ...(node.sourceGone !== undefined && { source_gone: node.sourceGone }),
    ...(node.originName !== undefined && { parent: node.originName, from_anchor: node.fromAnchor ?? null }),
    ...(node.link !== undefined && { link: linkJson(node.link, node.parentName) }),
    ...(node.range !== undefined && { range: node.range }),
    created_at: node.createdAt,
    merges: node.merges.map(({ type, intoName, seq, received, range, at, undone }) => ({
      type,
      into: intoName,
      seq,
      ...(received !== undefined && { received }),
      range,
      at,
      ...(undone === true && { undone }),
    })),
    children: graph.children(node.id).map((child) => treeJson(graph, child)),
  };
}

/** Warns of skipped lines: a lineage without them is incomplete. */
export function warnOfSkips({ skipped }: SessionGraph, { status }: Pick<Context, 'status'>): void {
  const reasons = Object.entries(skipped).filter(([, count]) => count > 0);
  if (reasons.length > 0)
    status(`Skipped lines of the graph file: ${reasons.map(([why, count]) => `${count} ${why}`).join(', ')}`);
}

/** How rows of a picture look: on a terminal they fit its width. */
export function lineOptions({
  io,
  color,
  style,
  link,
}: Pick<Context, 'io' | 'color' | 'style' | 'link'>): LineOptions {
  return {
    color,
    ...(io.isTerminal && { width: io.columns, cut: cutText }),
    name: (text, node) => {
      const isFailed = stateOf(node).startsWith('merged, ');
      return link(node.id, style.text(isFailed ? ['bold', 'red'] : 'bold', text));
    },
  };
}

/** Prints the rows of a picture. */
export async function printRows(
  rows: Iterable<string>,
  { io, status }: Pick<Context, 'io' | 'status'>,
): Promise<void> {
  let isEmpty = true;
  for (const row of rows) {
    isEmpty = false;
    await io.out(`${row}\n`);
  }
  if (isEmpty) status('No sessions');
}
