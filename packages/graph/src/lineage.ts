import type { Folded } from './fold.ts';
import type { SessionNode } from './node.ts';

/** A session in a tree: its depth, and whether it is the last of its siblings. */
export interface LineageStep {
  readonly depth: number;
  readonly node: SessionNode;
  readonly last: boolean;
}

/** The ancestors of a session, nearest first. */
export function ancestorsOf({ nodes }: Folded, node: SessionNode): SessionNode[] {
  const found: SessionNode[] = [];
  let at = parentOf(nodes, node);
  for (; at !== undefined; at = parentOf(nodes, at)) found.push(at);
  return found;
}

/** A session and its descendants, each before its children, children in spawn order. */
export function* subtreeOf(
  { nodes, children }: Folded,
  node: SessionNode,
  depth = 0,
): Generator<LineageStep, void, undefined> {
  const waiting: LineageStep[] = [{ depth, node, last: true }];
  for (let step = waiting.pop(); step !== undefined; step = waiting.pop()) {
    yield step;
    const ids = children.get(step.node.id)?.toReversed() ?? [];
    for (const [i, id] of ids.entries()) {
      const child = nodes.get(id);
      if (child !== undefined) waiting.push({ depth: step.depth + 1, node: child, last: i === 0 });
    }
  }
}

/** The sessions without a parent in the graph, oldest first. */
export function rootsOf({ nodes }: Folded): SessionNode[] {
  return [...nodes.values()].filter((node) => parentOf(nodes, node) === undefined);
}

function parentOf(nodes: Folded['nodes'], node: SessionNode): SessionNode | undefined {
  return node.parent === undefined ? undefined : nodes.get(node.parent);
}
