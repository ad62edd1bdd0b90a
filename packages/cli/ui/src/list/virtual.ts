import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core';
import type { RefObject } from 'preact';
import { useLayoutEffect, useReducer, useState } from 'preact/hooks';

/** What of a long list is drawn. */
export type Virtual = Virtualizer<HTMLElement, HTMLElement>;

type Options = VirtualizerOptions<HTMLElement, HTMLElement>;

/** Which rows of a list are in view, inside of the element that scrolls. */
export function useVirtual(
  scroller: RefObject<HTMLElement | null>,
  options: Pick<Options, 'count' | 'estimateSize'> & Partial<Options>,
): Virtual {
  const [, changed] = useReducer((n: number) => n + 1, 0);
  const whole: Options = {
    getScrollElement: () => scroller.current,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    overscan: 8,
    ...options,
    onChange: () => changed(undefined as never),
  };
  const [virtual] = useState(() => new Virtualizer(whole));
  virtual.setOptions(whole);
  useLayoutEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  return virtual;
}
