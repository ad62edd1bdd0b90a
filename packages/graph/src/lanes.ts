import { lanesMax, type PictureRow } from './layout.ts';

/** How a terminal shows each shape. */
const glyphs = { open: '○ ', merged: '● ', ended: '× ', mark: '· ', more: '⋮ ' } as const;

/** The lanes of a row, as cells of two characters: those to the left of its session, and the session. */
export function cellsOf({ depth, lanes, shape }: PictureRow, most: number = lanesMax): string[] {
  const seen = lanes.slice(-most);
  const cells = seen.map((goesOn, i) => {
    if (i < seen.length - 1) return goesOn ? '│ ' : '  ';
    return goesOn ? '├─' : '╰─';
  });
  return [...(depth > seen.length ? ['… '] : []), ...cells, glyphs[shape]];
}

/** Colours the lanes of a line that may have been cut. The colour of a lane depends on its place. */
export function paint(line: string, cells: readonly string[]): string {
  const drawn = cells.length * 2;
  const painted = Array.from(line.slice(0, drawn).matchAll(/..?/g), ([cell], lane) =>
    cell.trim() === '' ? cell : `\u001b[${31 + (lane % 6)}m${cell}\u001b[39m`,
  );
  return painted.join('') + line.slice(drawn);
}
