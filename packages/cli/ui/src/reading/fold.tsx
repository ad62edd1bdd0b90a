import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';

/** What a reader has folded and unfolded. */
export interface Folds {
  readonly isOpen: (id: string, otherwise: boolean) => boolean;
  readonly turn: (id: string, isOpen: boolean) => void;
}

export const FoldsOf = createContext<Folds>({ isOpen: (_, otherwise) => otherwise, turn: () => {} });

/** Something folded. It stays as its reader left it while it is scrolled out of view. */
export function Fold({
  id,
  class: name,
  isOpen = false,
  summary,
  children,
}: {
  readonly id: string;
  readonly class: string;
  /** Whether it is open until its reader says otherwise. */
  readonly isOpen?: boolean;
  readonly summary: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const folds = useContext(FoldsOf);
  const open = folds.isOpen(id, isOpen);
  return (
    <details
      class={`fold-part ${name}`}
      open={open}
      data-fold={id}
      onToggle={({ currentTarget }) => {
        if (currentTarget.open !== open) folds.turn(id, currentTarget.open);
      }}
    >
      <summary>{summary}</summary>
      {open && <div class="folded">{children}</div>}
    </details>
  );
}
