import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { useKeys } from '../parts/keys.ts';
import { grouped } from '../parts/numbers.tsx';
import { useActiveRow } from './active-row.ts';
import { Cell } from './cell.tsx';
import { useVirtual } from './virtual.ts';

/** How a row of a list is drawn. */
interface RowLook {
  readonly class?: string;
  /** Of a tree: how deep it is, from 1, and whether what is below it is drawn; absent where nothing is. */
  readonly level?: number;
  readonly isOpen?: boolean;
  /** Its cells. */
  readonly cells: ComponentChildren;
}

/** A list of any length. */
export interface RowsOptions<T> {
  readonly label: string;
  readonly isTree: boolean;
  /** The height of a row, in pixels. */
  readonly height: number;
  readonly count: number;
  /** Another list begins at its top. */
  readonly place: string;
  readonly at: (index: number) => T | undefined;
  readonly keyOf: (row: T) => string;
  readonly want: (first: number, last: number) => void;
  readonly look: (row: T, index: number) => RowLook;
  readonly head?: ComponentChildren;
  /** Opens a row. */
  readonly act: (row: T) => void;
  /** Draws, or does not, what is below a row. */
  readonly fold?: (row: T, isOpen: boolean) => void;
}

/**
 * A table of which the rows in view are drawn, for the keyboard too: `j` and `k` move, Enter opens, and left and right fold. One row
 * has the focus, and is drawn also where it is out of view.
 */
export function Rows<T>(options: RowsOptions<T>) {
  const { label, isTree, height, count, place, at, keyOf, want, look, head, act, fold } = options;
  const scroller = useRef<HTMLDivElement>(null);
  const keyAt = (index: number) => {
    const row = at(index);
    return row === undefined ? undefined : keyOf(row);
  };
  const { index: active, moveTo: moveFocusTo, events } = useActiveRow(scroller, place, keyAt);
  const virtual = useVirtual(scroller, {
    count,
    estimateSize: () => height,
    rangeExtractor: ({ startIndex, endIndex, overscan }) => {
      const first = Math.max(0, startIndex - overscan);
      const last = Math.min(count - 1, endIndex + overscan);
      const shown = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
      if (active >= count || (active >= first && active <= last)) return shown;
      return active < first ? [active, ...shown] : [...shown, active];
    },
  });
  useLayoutEffect(() => virtual.measure(), [height, virtual]);
  const { startIndex = 0, endIndex = 0 } = virtual.range ?? {};
  useEffect(() => want(startIndex, endIndex), [want, startIndex, endIndex]);

  const moveTo = (index: number) => {
    const next = Math.max(0, Math.min(count - 1, index));
    virtual.scrollToIndex(next, { align: 'auto' });
    moveFocusTo(next);
  };
  const inView = Math.max(1, Math.floor((scroller.current?.clientHeight ?? height) / height) - 1);
  const row = at(active);
  const foldTo = (isOpen: boolean) => row !== undefined && fold?.(row, isOpen);
  useKeys([
    {
      keys: ['j', 'ArrowDown'],
      what: 'next row',
      act: () => moveTo(active + (hasFocus(scroller.current) ? 1 : 0)),
    },
    {
      keys: ['k', 'ArrowUp'],
      what: 'row before',
      act: () => moveTo(active - (hasFocus(scroller.current) ? 1 : 0)),
    },
    { keys: ['Home', 'g g'], what: 'first row', act: () => moveTo(0) },
    { keys: ['End', 'G'], what: 'last row', act: () => moveTo(count - 1) },
    { keys: ['PageDown'], act: () => moveTo(active + inView) },
    { keys: ['PageUp'], act: () => moveTo(active - inView) },
    ...(fold === undefined
      ? []
      : [
          { keys: ['ArrowRight', 'l'], what: 'unfold', act: () => foldTo(true) },
          { keys: ['ArrowLeft', 'h'], what: 'fold', act: () => foldTo(false) },
        ]),
  ]);

  const drawn = virtual.getVirtualItems();
  return (
    <div class="rows" ref={scroller} tabIndex={-1} {...events}>
      <div
        class="grid"
        role={isTree ? 'treegrid' : 'grid'}
        aria-label={label}
        aria-rowcount={count}
        style={{ '--row': `${height}px` }}
      >
        {head}
        <div role="rowgroup" class="drawn" style={{ height: `${virtual.getTotalSize()}px` }}>
          {drawn.map(({ index, start }) => {
            const item = at(index);
            const {
              class: name = '',
              level,
              isOpen,
              cells,
            } = item === undefined ? waiting : look(item, index);
            return (
              <div
                key={keyAt(index) ?? index}
                class={`row ${name}`}
                role="row"
                aria-rowindex={index + 1}
                aria-level={level}
                aria-expanded={isOpen}
                tabIndex={index === active ? 0 : -1}
                style={{ transform: `translateY(${start}px)` }}
                onKeyDown={(event) => {
                  if (event.key !== 'Enter' || event.target !== event.currentTarget || item === undefined)
                    return;
                  event.preventDefault();
                  act(item);
                }}
              >
                {cells}
              </div>
            );
          })}
        </div>
      </div>
      {drawn.length < count && (
        <p class="printed-note">
          {grouped(drawn.length)} of {grouped(count)} rows are printed: those that were in view.
        </p>
      )}
    </div>
  );
}

/** A row that is on its way. */
const waiting: RowLook = {
  class: 'waiting',
  cells: <Cell class="loading">…</Cell>,
};

function hasFocus(element: HTMLElement | null): boolean {
  return element?.contains(document.activeElement) === true;
}
