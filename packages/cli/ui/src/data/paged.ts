import { useMemo, useReducer, useRef } from 'preact/hooks';
import { type AskPage, PagedRows } from './paged-rows.ts';

/** A list for a part of the page. */
export interface Paged<T>
  extends Pick<PagedRows<T>, 'count' | 'isCounted' | 'isLoaded' | 'error' | 'at' | 'want'> {
  readonly again: () => void;
  /** The same while nothing of it is here: what is waited for may never come. */
  readonly askAgain: () => void;
  readonly patch: (change: (row: T) => T) => void;
}

/**
 * The list that `ask` answers; another one for another `key`, which stands for all that `ask` depends on. The one before is
 * shown until that is loaded. With `keepsPlace` it is loaded where the one before is looked at, else from its beginning.
 */
export function usePaged<T>(ask: AskPage<T>, key: string, { keepsPlace = false } = {}): Paged<T> {
  const [, changed] = useReducer((n: number, _: undefined) => n + 1, 0);
  const [attempt, askAgain] = useReducer((n: number, _: undefined) => n + 1, 0);
  const shown = useRef<PagedRows<T>>(undefined);
  const rows = useMemo(() => {
    const made = new PagedRows<T>(ask, () => changed(undefined));
    const [first, last] = keepsPlace ? (shown.current?.wanted ?? [0, 0]) : [0, 0];
    made.want(first, last);
    return made;
  }, [key, attempt]);
  if (shown.current === undefined || rows.isLoaded || rows.error !== undefined) shown.current = rows;
  const { current } = shown;
  return useMemo(
    () => ({
      count: current.count,
      isCounted: current.isCounted,
      isLoaded: current.isLoaded,
      error: rows.error,
      at: (index: number) => current.at(index),
      want: (first: number, last: number) => current === rows && rows.want(first, last),
      again: () => rows.again(),
      askAgain: () => askAgain(undefined),
      patch: (change: (row: T) => T) => current.patch(change),
    }),
    [current, rows, current.count, current.isLoaded, rows.error],
  );
}
