import { shown, span } from './display.ts';
import { courseOf, type GraphEvent, type PictureMark } from './events.ts';
import { branchOn, type Lanes, lineBetween, openLane, pointOn, row } from './lanes.ts';
import { distinctNames, type MergeRecord, type SessionNode } from './node.ts';

/** Options of a drawing. */
export interface DrawOptions {
  /** Colours the lanes with ANSI escapes. */
  readonly color?: boolean | undefined;
  /** Maximum number of characters of a row. */
  readonly width?: number | undefined;
  /** Points of sessions to draw. */
  readonly marks?: readonly PictureMark[] | undefined;
}

/**
 * Draws forks and merges, oldest first, one row per event. A session has a lane from its first line to its
 * last merge, or else to a row with its status; active sessions come last. Beyond 40 open sessions, the others have no
 * lane: their first row has the status, and their merges are on the lane of the target.
 *
 * @example
 * ```ts
 * import { drawGraph, SessionGraph } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * const graph = SessionGraph.fromRecords(store.lineage.read());
 * console.log(drawGraph(graph.list()).join('\n'));
 * // ○  main
 * // ├─╮  idea [subagent] from main 1-1
 * // │ ○  idea active
 * // ○  main active
 * ```
 */
export function drawGraph(nodes: Iterable<SessionNode>, options: DrawOptions = {}): string[] {
  const all = distinctNames([...nodes]);
  const { events, lastUse } = courseOf(all, options.marks);
  const lanes: Lanes = [];
  const rows: string[] = [];
  for (const event of events) {
    rows.push(drawEvent(lanes, event, { ...options, closes: event.at === lastUse.get(event.node.id) }));
  }
  const open = new Map(all.filter(({ id }) => lanes.includes(id)).map((node) => [node.id, node]));
  for (const id of lanes.toReversed()) {
    const node = open.get(id ?? '');
    if (node === undefined) continue;
    rows.push(drawEvent(lanes, { kind: 'end', at: node.lastG, node }, { ...options, closes: true }));
  }
  return rows;
}

function drawEvent(
  lanes: Lanes,
  event: GraphEvent,
  { closes, ...options }: DrawOptions & { closes: boolean },
): string {
  const { node } = event;
  if (event.kind === 'start') {
    const parent = laneOf(lanes, node.parent);
    const lane = openLane(lanes, node.id, parent + 1);
    if (lane === -1)
      return row(
        branchOn(lanes, parent),
        `${startLabel(node, parent !== -1)}: ${shown(node.status)}`,
        options,
      );
    const cells = parent === -1 ? pointOn(lanes, lane) : lineBetween(lanes, [parent, lane], '├╮');
    return row(cells, startLabel(node, parent !== -1), options);
  }
  const lane = laneOf(lanes, node.id);
  if (event.kind === 'mark') {
    const cells = lane === -1 ? [] : pointOn(lanes, lane);
    if (closes && lane !== -1) lanes[lane] = undefined;
    return row(cells, shown(event.label), options);
  }
  const cells =
    event.kind === 'end'
      ? pointOn(lanes, lane)
      : mergeCells(lanes, lane, laneOf(lanes, event.merge.into), closes);
  if (closes && lane !== -1) lanes[lane] = undefined;
  return row(cells, event.kind === 'end' ? endLabel(node) : mergeLabel(event.merge), options);
}

/** Draws a merge on the lane of the child alone when its target has no lane, as in a foreign file. */
function mergeCells(lanes: Lanes, lane: number, target: number, closes: boolean): string[] {
  if (lane === -1) return branchOn(lanes, target);
  if (target === -1 || target === lane) return pointOn(lanes, lane);
  return target < lane
    ? lineBetween(lanes, [target, lane], closes ? '├╯' : '├┤')
    : lineBetween(lanes, [lane, target], closes ? '╰┤' : '├┤');
}

function laneOf(lanes: Lanes, id: string | undefined): number {
  return id === undefined ? -1 : lanes.indexOf(id);
}

function startLabel(node: SessionNode, joined: boolean): string {
  const kind = node.kind === 'session' ? '' : ` [${shown(node.kind)}]`;
  const name = `${shown(node.session)}${kind}`;
  if (node.parentName === undefined) return name;
  const range =
    node.range === undefined ? '' : node.range === null ? ', inherits nothing' : ` ${span(node.range)}`;
  const anchor = node.fromAnchor === undefined ? '' : ` ⚓ ${shown(node.fromAnchor)}`;
  return `${name} from ${shown(node.parentName)}${anchor}${range}${joined ? '' : ' (not drawn)'}`;
}

function mergeLabel({ type, childName, range, intoName, seq, status }: MergeRecord): string {
  const what = `${type} ${shown(childName)}${range === undefined ? '' : ` ${span(range)}`}`;
  const into = intoName === undefined ? '' : ` → ${shown(intoName)}${seq === undefined ? '' : `@${seq}`}`;
  const more = status === 'merged' || status === 'discarded' ? '' : ` (${shown(status)})`;
  return `${what}${into}${more}`;
}

function endLabel(node: SessionNode): string {
  return `${shown(node.session)} ${shown(node.status)}`;
}
