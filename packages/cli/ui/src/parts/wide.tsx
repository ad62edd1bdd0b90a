import type { ComponentChildren } from 'preact';

/** Something that may be wider than the page: it scrolls by itself, by the keyboard too. */
export function Wide({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it the keyboard could not scroll it
    <section class="wide" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
