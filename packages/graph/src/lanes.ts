import { cut } from './display.ts';

/** The ids of the sessions in the lanes of a drawing, left to right; a free lane is undefined. */
export type Lanes = (string | undefined)[];

/** How many lanes a drawing has, at most: with one for each open session, it would grow with their square. */
const lanesMax = 40;

/** Puts a session in the first free lane at or after `from`, and returns the lane; -1 when all are taken. */
export function openLane(lanes: Lanes, id: string, from: number): number {
  let lane = from;
  while (lanes[lane] !== undefined) lane += 1;
  if (lane >= lanesMax) return -1;
  lanes[lane] = id;
  return lane;
}

/** A branch at a lane to something without a lane; on none, the lanes as they are. */
export function branchOn(lanes: Lanes, lane: number): string[] {
  const cells = running(lanes);
  if (lane !== -1) cells[lane] = '├─';
  return cells;
}

/** A point on one lane, as cells of two characters. */
export function pointOn(lanes: Lanes, lane: number): string[] {
  const cells = running(lanes);
  cells[lane] = '○ ';
  return cells;
}

/** A line from one lane to another, across the lanes between. `ends` has its left and right end. */
export function lineBetween(lanes: Lanes, [left, right]: readonly [number, number], ends: string): string[] {
  const cells = running(lanes);
  cells[left] = `${ends.charAt(0)}─`;
  for (let lane = left + 1; lane < right; lane += 1) cells[lane] = lanes[lane] === undefined ? '──' : '┼─';
  cells[right] = `${ends.charAt(1)} `;
  return cells;
}

/** A row of the drawing: lanes and label, cut to the width. The colour of a lane depends on its index. */
export function row(
  cells: readonly string[],
  label: string,
  { color = false, width }: { color?: boolean | undefined; width?: number | undefined },
): string {
  const whole = `${cells.join('')} ${label}`;
  const line = width === undefined ? whole : cut(whole, width);
  if (!color) return line;
  const drawn = cells.length * 2;
  const painted = Array.from(line.slice(0, drawn).matchAll(/..?/g), ([cell], lane) =>
    cell.trim() === '' ? cell : `\u001b[${31 + (lane % 6)}m${cell}\u001b[39m`,
  );
  return painted.join('') + line.slice(drawn);
}

/** The cells of all lanes without an event. Drops free lanes at the right. */
function running(lanes: Lanes): string[] {
  while (lanes.length > 0 && lanes.at(-1) === undefined) lanes.pop();
  return Array.from(lanes, (id) => (id === undefined ? '  ' : '│ '));
}
