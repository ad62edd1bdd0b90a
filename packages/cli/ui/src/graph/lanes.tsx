import type { LineageRow } from '../../../src/page/data.ts';
import { ShapeAt, shapeOf } from '../parts/glyph.tsx';
import { drawingOf, type Sizes } from './strokes.ts';

/** How many colours lanes have, one after the other. */
const colours = 6;

/** The lanes of a row, and its point on them. The row says the same in words. */
export function Lanes({
  row,
  goesOn,
  sizes,
}: {
  readonly row: LineageRow;
  readonly goesOn: boolean;
  readonly sizes: Sizes;
}) {
  const { width, strokes, x, y, lane, isCut } = drawingOf(row, goesOn, sizes);
  return (
    <svg
      class="lanes"
      width={width}
      height={sizes.height}
      viewBox={`0 0 ${width} ${sizes.height}`}
      aria-hidden="true"
    >
      {isCut && <path d={`M1 ${y}h3`} class="stroke dotted" />}
      {strokes.map(({ path, lane: of, isDotted = false }) => (
        <path key={path} d={path} class={`stroke lane-${of % colours}${isDotted ? ' dotted' : ''}`} />
      ))}
      <g
        transform={`translate(${x} ${y})`}
        class={`point lane-${lane % colours} tone-${row.tone ?? 'plain'}`}
      >
        <Point row={row} />
      </g>
    </svg>
  );
}

/** What stands on a lane. */
function Point({ row: { shape, state, standing } }: { readonly row: LineageRow }) {
  switch (shape) {
    case 'session':
      return <ShapeAt shape={state === undefined ? shapeOf(standing ?? '') : shapeOf(state)} />;
    case 'anchor':
      return <path d="M0-3.5 3.5 0 0 3.5-3.5 0z" class="anchor" />;
    case 'handoff':
      return <path d="M-3.5-3h7v6h-7z" class="anchor" />;
    case 'merge':
      return <circle r="2.5" class="full" />;
    default:
      return <path d="M-3.5 0h0M0 0h0M3.5 0h0" class="dots" />;
  }
}
