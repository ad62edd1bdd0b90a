import { useMemo, useReducer, useRef } from 'preact/hooks';
import type { Folds } from './fold.tsx';

/** What is folded on a page, and how all of an item is folded or unfolded at once. */
export function useFolds(): Folds & { readonly turnAll: (item: HTMLElement | null) => void } {
  const kept = useRef(new Map<string, boolean>());
  const [round, changed] = useReducer((n: number, _: undefined) => n + 1, 0);
  return useMemo(() => {
    const turn = (id: string, isOpen: boolean) => {
      kept.current.set(id, isOpen);
      changed(undefined);
    };
    return {
      isOpen: (id: string, otherwise: boolean) => kept.current.get(id) ?? otherwise,
      turn,
      turnAll: (item: HTMLElement | null) => {
        // What is inside of something folded stays as it is.
        const found = [
          ...(item?.querySelectorAll<HTMLDetailsElement>(
            'details[data-fold]:not(.menu, [data-fold] [data-fold])',
          ) ?? []),
        ];
        const isAnyFolded = found.some(({ open }) => !open);
        for (const { dataset } of found) turn(dataset.fold ?? '', isAnyFolded);
      },
    };
  }, [round]);
}
