import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Refused } from './refused.tsx';

/** How long an answer is waited for until one can ask again, in milliseconds. */
const patienceMs = 10_000;

interface Waiting {
  /** Asks once more, as the answer may never come. Absent where it can take long. */
  readonly again?: () => void;
  /** What is done. */
  readonly words?: string;
}

/** Stands where the first data of a page are on their way, and says so of all of its content. */
export function Loading({ again, words = 'Loading' }: Waiting) {
  const place = useRef<HTMLDivElement>(null);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    if (again === undefined) return undefined;
    const timer = setTimeout(() => setLate(true), patienceMs);
    return () => clearTimeout(timer);
  }, []);
  useLayoutEffect(() => {
    const { current } = place;
    const main = current?.closest('main');
    // A screen reader may say nothing of what is busy, and would hide the button with it.
    main?.setAttribute('aria-busy', String(!isLate));
    return () => {
      main?.removeAttribute('aria-busy');
      // The answer takes the place of the button.
      if (current?.contains(document.activeElement) === true) main?.querySelector('h1')?.focus();
    };
  }, [isLate]);
  return (
    <div class="awaited" ref={place}>
      <p role="status">{isLate ? `${words} takes long: no answer came so far.` : `${words}…`}</p>
      {isLate && (
        <button type="button" onClick={again}>
          Ask again
        </button>
      )}
    </div>
  );
}

/** Says why an answer is not here: it is on its way, or was refused. */
export function NotHere({
  value,
  error,
  again,
}: {
  readonly value?: unknown;
  readonly error?: unknown;
  readonly again: () => void;
}) {
  if (error !== undefined) return <Refused error={error} again={again} />;
  return value === undefined ? <Loading again={again} /> : null;
}
