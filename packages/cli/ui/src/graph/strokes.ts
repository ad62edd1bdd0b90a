import type { LineageRow } from '../../../src/page/data.ts';

/** Sizes of a row of the lineage, in pixels. */
export interface Sizes {
  /** Between two lanes. */
  readonly lane: number;
  readonly height: number;
  /** The most lanes that are drawn; `…` stands for those to the left of them. */
  readonly most: number;
}

/** A line of a row, and the lane whose colour it has. */
interface Stroke {
  readonly path: string;
  readonly lane: number;
  readonly isDotted?: boolean;
}

/** What of the lanes a row shows. */
export interface RowDrawing {
  readonly width: number;
  readonly strokes: readonly Stroke[];
  /** The point of the row, and the lane whose colour it has. */
  readonly x: number;
  readonly y: number;
  readonly lane: number;
  /** Whether lanes to the left are left out. */
  readonly isCut: boolean;
}

/**
 * The lines of a row. The newest is above: a lane leaves its parent below, at the last row of what is on it, and one that was
 * merged returns to it above its first row.
 * @param goesOn whether the next row stands on the lane of this one
 */
export function drawingOf(
  row: Pick<LineageRow, 'depth' | 'lanes' | 'shape' | 'standing'>,
  goesOn: boolean,
  { lane: step, height, most }: Sizes,
): RowDrawing {
  const lanes = row.lanes.slice(-most);
  const above = lanes.length;
  const lost = row.depth - above;
  // A mark stands on the lane of its session, which is the last one above it.
  const isMark = row.shape === 'anchor' || row.shape === 'handoff' || row.shape === 'merge';
  const own = isMark ? Math.max(0, above - 1) : above;
  const x = (lane: number) => step * (lane + 0.75);
  const middle = height / 2;

  // Lanes that have nothing more below this row end in it, one after the other into the one to the left.
  const runsOn = (lane: number) => goesOn || lanes.slice(lane).includes(true);
  let staying = 0;
  while (staying < above && runsOn(staying)) staying += 1;
  const ends = !goesOn && staying <= own;
  const last = Math.max(staying - 1, 0);
  const fallOf = (lane: number) => middle + ((height - middle) * (own - lane)) / Math.max(1, own - last);

  const strokes: Stroke[] = [];
  const add = (lane: number, path: string, isDotted = false) =>
    strokes.push({ path, lane: lost + lane, ...(isDotted && { isDotted }) });
  for (let lane = 0; lane < above; lane += 1) {
    const isOwn = lane === own;
    const end = lane < staying ? height : isOwn && own === 0 ? middle : Math.min(height, fallOf(lane));
    add(lane, `M${n(x(lane))} 0V${n(end)}`);
  }
  const isMore = row.shape === 'more';
  if (goesOn && !isMark) add(own, `M${n(x(own))} ${n(middle)}V${n(height)}`, isMore);
  if (ends)
    for (let lane = own; lane > last; lane -= 1)
      add(lane, bend(x(lane), fallOf(lane), x(lane - 1), fallOf(lane - 1)), isMore && lane === own);
  if (row.standing === 'merged' && above > 0) add(own, bend(x(own), middle, x(own - 1), 0));
  return {
    width: x(Math.max(above, own)) + step * 0.75,
    strokes,
    x: x(own),
    y: middle,
    lane: lost + own,
    isCut: lost > 0,
  };
}

/** A curve that leaves and arrives upright. */
function bend(x1: number, y1: number, x2: number, y2: number): string {
  const half = n((y1 + y2) / 2);
  return `M${n(x1)} ${n(y1)}C${n(x1)} ${half} ${n(x2)} ${half} ${n(x2)} ${n(y2)}`;
}

/** A number with one digit behind the point. */
function n(value: number): number {
  return Math.round(value * 10) / 10;
}
