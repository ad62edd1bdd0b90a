import type { ComponentChildren } from 'preact';

/** Something that may be wider than the page: it scrolls by itself, by the keyboard too. */
export function Wide({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields, and a section is a landmark
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it the keyboard could not scroll it
    <div class="wide" role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
