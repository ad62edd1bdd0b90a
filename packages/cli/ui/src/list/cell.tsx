import type { ComponentChildren } from 'preact';

/** A cell of a row of `Rows`. */
export function Cell({
  class: name,
  title,
  children,
}: {
  readonly class: string;
  readonly title?: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <span role="gridcell" class={name} title={title}>
      {children}
    </span>
  );
}

/** The head of a column, and how the list is sorted by it. */
export function ColumnHead({
  class: name,
  sorted,
  children,
}: {
  readonly class: string;
  readonly sorted: 'ascending' | 'descending' | undefined;
  readonly children: ComponentChildren;
}) {
  return (
    <span role="columnheader" class={name} aria-sort={sorted}>
      {children}
    </span>
  );
}

/** The heads of the columns. */
export function HeadRow({
  class: name,
  children,
}: {
  readonly class: string;
  readonly children: ComponentChildren;
}) {
  return (
    <div role="rowgroup" class="head">
      <div role="row" class={`row ${name}`}>
        {children}
      </div>
    </div>
  );
}
