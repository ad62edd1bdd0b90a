import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** Says in the place of a list that it is empty. It takes the focus that the list had. */
export function Nothing({ children }: { readonly children: ComponentChildren }) {
  const place = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => {
    if (document.activeElement === document.body) place.current?.focus();
  }, []);
  return (
    <p class="empty" ref={place} tabIndex={-1}>
      {children}
    </p>
  );
}
