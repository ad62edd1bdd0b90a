import { shown } from './display.ts';
import { type LayoutOptions, layOut, type PictureRow } from './layout.ts';
import type { SessionNode } from './node.ts';

/** How rows become an image. */
export interface ImageOptions {
  /** What the image shows, for those who do not see it. */
  readonly title?: string | undefined;
  /** Number of columns that a text fills in a font of one width; the default counts characters. */
  readonly textWidth?: ((text: string) => number) | undefined;
}

/** Options of an image of sessions. */
export interface SvgOptions extends LayoutOptions, ImageOptions {}

/** Sizes in pixels. */
const size = { margin: 16, row: 24, lane: 20, gap: 14, column: 7.9, radius: 5 };

/** The colours of both schemes, each with enough contrast to its background. */
const style = `
  svg { --back: #ffffff; --text: #1f2328; --line: #8c959f; --open: #0969da; --merged: #8250df; --ended: #cf222e; }
  @media (prefers-color-scheme: dark) {
    svg { --back: #0d1117; --text: #e6edf3; --line: #6e7681; --open: #58a6ff; --merged: #bc8cff; --ended: #ff7b72; }
  }
  rect { fill: var(--back); }
  text { fill: var(--text); font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; }
  path, circle { fill: none; stroke: var(--line); stroke-width: 1.5; }
  .open { stroke: var(--open); } .ended { stroke: var(--ended); stroke-width: 2; }
  .merged { stroke: var(--merged); fill: var(--merged); } .mark { fill: var(--line); }
`;

/**
 * The drawing of `drawGraph` as an SVG image. It stands alone: it has no script, no link and no font, and has colours for
 * light and dark surroundings.
 *
 * @example
 * ```ts
 * import { SessionGraph, toSvg } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * const graph = SessionGraph.fromRecords(store.lineage.read());
 * console.log(toSvg(graph.list()).includes('>idea [subagent] active, from main 1-1</text>')); // true
 * ```
 */
export function toSvg(nodes: Iterable<SessionNode>, options: SvgOptions = {}): string {
  const rows = [...layOut(nodes, options)];
  return [...svgLines(() => rows, options)].join('\n');
}

/**
 * The lines of an image, for one that is too large to be held in memory.
 * @param read reads its rows, twice: the first line has the size of the image
 *
 * @example
 * ```ts
 * import { layOut, SessionGraph, svgLines } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const graph = SessionGraph.fromRecords(store.lineage.read());
 * const lines = [...svgLines(() => layOut(graph.list()))];
 * console.log(lines.at(-2)); // </svg>
 * ```
 */
export function* svgLines(
  read: () => Iterable<PictureRow>,
  { title = 'Sessions', textWidth = (text) => text.length }: ImageOptions = {},
): Generator<string, void, undefined> {
  let [width, count, sessions] = [200, 0, 0];
  for (const row of read()) {
    width = Math.max(width, labelX(row) + textWidth(row.label) * size.column + size.margin);
    count += 1;
    sessions += row.sessions;
  }
  const height = count * size.row + 2 * size.margin;
  const box = `${Math.ceil(width)} ${height}`;
  yield* [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(width)}" height="${height}" viewBox="0 0 ${box}" role="img" aria-labelledby="title desc">`,
    `<title id="title">${escaped(shown(title))}</title>`,
    `<desc id="desc">${sessions} ${sessions === 1 ? 'session' : 'sessions'} as trees, newest first: a circle is open, a disc is merged, a cross ended in another way.</desc>`,
    `<style>${style}</style>`,
    '<rect width="100%" height="100%"/>',
  ];
  let index = 0;
  let above: PictureRow | undefined;
  for (const row of read()) {
    if (above !== undefined) yield rowOf(above, index++, row.depth > above.depth);
    above = row;
  }
  if (above !== undefined) yield rowOf(above, index, false);
  yield* ['</svg>', ''];
}

function laneX(lane: number): number {
  return size.margin + size.radius + lane * size.lane;
}

function labelX({ lanes }: PictureRow): number {
  return laneX(lanes.length) + size.gap;
}

function rowOf(row: PictureRow, index: number, hasBelow: boolean): string {
  const top = size.margin + index * size.row;
  const [middle, bottom] = [top + size.row / 2, top + size.row];
  const x = laneX(row.lanes.length);
  const last = row.lanes.length - 1;
  const lines = row.lanes.flatMap((goesOn, lane) => {
    if (lane < last) return goesOn ? [`M${laneX(lane)} ${top}V${bottom}`] : [];
    return [
      `M${laneX(lane)} ${top}V${goesOn ? bottom : middle}`,
      `M${laneX(lane)} ${middle}H${x - size.radius}`,
    ];
  });
  if (hasBelow) lines.push(`M${x} ${middle + size.radius}V${bottom}`);
  const path = lines.length === 0 ? '' : `<path d="${lines.join('')}"/>`;
  const label = `<text x="${labelX(row)}" y="${middle + 4.5}">${escaped(row.label)}</text>`;
  return `<g>${path}${shapeAt(row.shape, x, middle)}${label}</g>`;
}

function shapeAt(shape: PictureRow['shape'], x: number, y: number): string {
  const r = shape === 'mark' ? 2 : size.radius;
  if (shape === 'more') return `<path d="M${x} ${y - r}V${y + r}" stroke-dasharray="2 2"/>`;
  if (shape !== 'ended') return `<circle class="${shape}" cx="${x}" cy="${y}" r="${r}"/>`;
  const cross = `M${x - r + 1} ${y - r + 1}L${x + r - 1} ${y + r - 1}M${x + r - 1} ${y - r + 1}L${x - r + 1} ${y + r - 1}`;
  return `<path class="ended" d="${cross}"/>`;
}

/** Text of XML. Labels have no character that XML does not allow: `shown` replaced them. */
function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}
