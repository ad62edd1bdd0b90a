import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { TimelineItem } from '../../../src/page/data.ts';
import { useSource } from '../data/data.tsx';
import { Refused } from '../parts/refused.tsx';
import { itemsBetween } from './items-between.ts';

/** How many positions are loaded at a time. */
const step = 200;

/** What a rewind hides, where it stands: loaded when a reader unfolds it. */
export function HiddenItems({
  session,
  from,
  to,
  draw,
}: {
  readonly session: string;
  readonly from: number;
  /** The rewind itself. */
  readonly to: number;
  readonly draw: (item: TimelineItem) => ComponentChildren;
}) {
  const { data } = useSource();
  const [end, setEnd] = useState(from + step - 1);
  const [loaded, setLoaded] = useState<{
    readonly items?: readonly TimelineItem[];
    readonly error?: unknown;
  }>({});
  const last = Math.min(to - 1, end);
  useEffect(() => {
    let isCurrent = true;
    const ask = async (first: number, until: number) =>
      await data.timeline({ session, from: first, to: until, hidden: true });
    itemsBetween(ask, from, last).then(
      (items) => isCurrent && setLoaded({ items }),
      (error: unknown) => isCurrent && setLoaded((was) => ({ ...was, error })),
    );
    return () => {
      isCurrent = false;
    };
  }, [data, session, from, last]);
  return (
    <>
      {loaded.error !== undefined && <Refused error={loaded.error} />}
      <ol class="hidden-items">
        {/* That it is hidden is said above. */}
        {loaded.items?.map(({ hiddenBy: _, ...item }) => (
          <li key={`${item.seq} ${item.kind}`} class={`item is-${item.kind} by-${item.role ?? 'none'}`}>
            {draw(item)}
          </li>
        ))}
      </ol>
      {last < to - 1 && (
        <button type="button" class="toggle" onClick={() => setEnd(end + step)}>
          Show {step} more positions
        </button>
      )}
    </>
  );
}
