import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** How many rows before and behind are looked at for one that moved. */
const nearby = 100;

/** The row that has the focus, or had it last. */
export interface ActiveRow {
  readonly index: number;
  readonly moveTo: (index: number) => void;
  /** For the element that scrolls. */
  readonly events: {
    readonly onFocusIn: (event: FocusEvent) => void;
    readonly onFocusOut: (event: FocusEvent) => void;
  };
}

/**
 * Keeps the focus on a row: also while that is not drawn yet, is drawn anew, or is at another place after the list was loaded
 * anew. Another `place` is another list, and begins at its first row.
 */
export function useActiveRow(
  scroller: RefObject<HTMLElement | null>,
  place: string,
  keyAt: (index: number) => string | undefined,
): ActiveRow {
  const [index, setIndex] = useState(0);
  const isFocused = useRef(false);
  const key = useRef<string>(undefined);

  useLayoutEffect(() => {
    key.current = undefined;
    setIndex(0);
    scroller.current?.scrollTo({ top: 0 });
  }, [place]);
  useLayoutEffect(() => {
    if (!isFocused.current) return;
    if (key.current !== undefined && keyAt(index) !== key.current) {
      const moved = around(index).find((one) => keyAt(one) === key.current);
      if (moved !== undefined) {
        setIndex(moved);
        return;
      }
    }
    key.current = keyAt(index);
    focusRow(scroller.current, index);
  });

  return {
    index,
    moveTo: (next) => {
      isFocused.current = true;
      key.current = undefined;
      setIndex(next);
      focusRow(scroller.current, next);
    },
    events: {
      onFocusIn: ({ target, currentTarget }) => {
        const row = target instanceof Element ? target.closest('[aria-rowindex]') : null;
        // The list itself has the focus for its row, as soon as that is drawn.
        isFocused.current = row !== null || target === currentTarget;
        if (isFocused.current) key.current = undefined;
        if (row !== null) setIndex(Number(row.getAttribute('aria-rowindex')) - 1);
        else if (isFocused.current) focusRow(scroller.current, index);
      },
      // A row that is drawn anew loses the focus because it is no longer there.
      onFocusOut: ({ target, relatedTarget, currentTarget }) => {
        if (isInside(currentTarget, relatedTarget)) return;
        queueMicrotask(() => {
          if (relatedTarget !== null || (target instanceof Node && target.isConnected))
            isFocused.current = false;
        });
      },
    },
  };
}

function isInside(element: EventTarget | null, target: EventTarget | null): boolean {
  return element instanceof Node && target instanceof Node && element.contains(target);
}

function focusRow(scroller: HTMLElement | null, index: number): void {
  const row = scroller?.querySelector<HTMLElement>(`[aria-rowindex="${index + 1}"]`);
  if (row?.contains(document.activeElement) === false) row.focus({ preventScroll: true });
}

/** The places around one, the nearest first. */
function around(index: number): readonly number[] {
  return Array.from(
    { length: 2 * nearby },
    (_, i) => index + (i % 2 === 0 ? -1 : 1) * (Math.floor(i / 2) + 1),
  );
}
