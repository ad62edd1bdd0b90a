import type { LineageRow } from '@tapedeck/cli/internal';
import { expect, test } from 'vitest';
import { closeRows } from '../../packages/cli/ui/src/data/close-rows.ts';
import { drawingOf } from '../../packages/cli/ui/src/graph/strokes.ts';

const sizes = { lane: 20, height: 40, most: 10 };
type Drawn = Pick<LineageRow, 'depth' | 'lanes' | 'shape' | 'standing'>;

/** The lines of a row: from which point to which, and of which lane. Lanes are at 15, 35, 55, … */
function linesOf(row: Drawn, goesOn: boolean) {
  const { strokes } = drawingOf(row, goesOn, sizes);
  return strokes.map(({ path, lane }) => {
    const [x = '', y = ''] = path.slice(1).split(/[ VC]/);
    const to = /V([\d.]+)$/.exec(path)?.[1];
    const end = to === undefined ? path.split(' ').slice(-2).join(',') : `${x},${to}`;
    return `${lane}: ${x},${y} to ${end}`;
  });
}

test('a session without anything on its lane is a point', () => {
  expect(linesOf({ depth: 0, lanes: [], shape: 'session' }, false)).toEqual([]);
  expect(drawingOf({ depth: 0, lanes: [], shape: 'session' }, false, sizes)).toMatchObject({ x: 15, y: 20 });
});

test('the lane of a session goes on below it', () => {
  expect(linesOf({ depth: 0, lanes: [], shape: 'session' }, true)).toEqual(['0: 15,20 to 15,40']);
});

test('a child leaves the lane of its parent below, which goes on', () => {
  expect(linesOf({ depth: 1, lanes: [true], shape: 'session', standing: 'open' }, false)).toEqual([
    '0: 15,0 to 15,40',
    '1: 35,20 to 15,40',
  ]);
});

test('a child that was merged returns to the lane of its parent above', () => {
  expect(linesOf({ depth: 1, lanes: [true], shape: 'session', standing: 'merged' }, true)).toEqual([
    '0: 15,0 to 15,40',
    '1: 35,20 to 35,40',
    '1: 35,20 to 15,0',
  ]);
});

test('the lane of a parent runs beside all that is below its last child, and ends at the last row of that', () => {
  // The parent has no further child, its last child has one more.
  expect(linesOf({ depth: 2, lanes: [false, true], shape: 'session' }, false)).toEqual([
    '0: 15,0 to 15,40',
    '1: 35,0 to 35,40',
    '2: 55,20 to 35,40',
  ]);
  expect(linesOf({ depth: 2, lanes: [false, false], shape: 'session' }, false)).toEqual([
    '0: 15,0 to 15,40',
    '1: 35,0 to 35,30',
    '2: 55,20 to 35,30',
    '1: 35,30 to 15,40',
  ]);
  expect(linesOf({ depth: 2, lanes: [true, false], shape: 'session' }, false)).toEqual([
    '0: 15,0 to 15,40',
    '1: 35,0 to 35,30',
    '2: 55,20 to 35,30',
    '1: 35,30 to 15,40',
  ]);
});

test('a mark stands on the lane of its session, which ends there where nothing follows', () => {
  expect(drawingOf({ depth: 1, lanes: [true], shape: 'anchor' }, false, sizes)).toMatchObject({
    x: 15,
    lane: 0,
  });
  expect(linesOf({ depth: 1, lanes: [true], shape: 'anchor' }, false)).toEqual(['0: 15,0 to 15,40']);
  expect(linesOf({ depth: 1, lanes: [false], shape: 'merge' }, false)).toEqual(['0: 15,0 to 15,20']);
  expect(linesOf({ depth: 2, lanes: [true, false], shape: 'handoff' }, false)).toEqual([
    '0: 15,0 to 15,40',
    '1: 35,0 to 35,20',
    '1: 35,20 to 15,40',
  ]);
});

test('a deep row has its last lanes, and keeps their colours', () => {
  const drawing = drawingOf({ depth: 60, lanes: Array(40).fill(true), shape: 'session' }, false, sizes);
  expect(drawing).toMatchObject({ isCut: true, lane: 60, x: 215 });
  expect(drawing.strokes.map(({ lane }) => lane)).toEqual([50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60]);
});

const row = (depth: number, id: string, shape: LineageRow['shape'] = 'session'): LineageRow => ({
  ...{ depth, lanes: [], shape, label: id, session: id, id },
  sessions: shape === 'session' ? 1 : 0,
});

test('what is below a closed session is left out and counted', () => {
  const rows = [row(0, 'a'), row(1, 'b'), row(2, 'b', 'anchor'), row(2, 'c'), row(1, 'd'), row(0, 'e')];
  const shown = (closed: readonly string[]) =>
    closeRows(rows, closed).map(
      ({ id, sessions, closed: isClosed }) => `${id} ${sessions}${isClosed ? ' closed' : ''}`,
    );
  expect(shown([])).toEqual(['a 1', 'b 1', 'b 0', 'c 1', 'd 1', 'e 1']);
  expect(shown(['b'])).toEqual(['a 1', 'b 2 closed', 'd 1', 'e 1']);
  expect(shown(['a', 'b'])).toEqual(['a 4 closed', 'e 1']);
  expect(shown(['e', 'd'])).toEqual(['a 1', 'b 1', 'b 0', 'c 1', 'd 1', 'e 1']);
});
