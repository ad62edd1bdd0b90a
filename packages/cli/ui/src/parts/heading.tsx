import type { ComponentChildren } from 'preact';

/** The head of a page: its title, which takes the focus when the page is opened, and what belongs to all of it. */
export function Heading({
  title,
  children,
}: {
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="heading">
      <h1 tabIndex={-1}>{title}</h1>
      {children}
    </div>
  );
}
