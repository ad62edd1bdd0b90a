import { NotAnswered } from '../data/not-answered.ts';

/** Says what was not answered, and what to do. */
export function Refused({ error, again }: { readonly error: unknown; readonly again?: () => void }) {
  const hint = error instanceof NotAnswered ? error.hint : undefined;
  // A file never has more.
  const isFinal = error instanceof NotAnswered && error.code === 'NOT_IN_FILE';
  return (
    <div class="refused" role="alert">
      <p>{error instanceof Error ? error.message : String(error)}</p>
      {hint !== undefined && <p class="soft">{hint}</p>}
      {again !== undefined && !isFinal && (
        <button type="button" onClick={again}>
          Ask again
        </button>
      )}
    </div>
  );
}
