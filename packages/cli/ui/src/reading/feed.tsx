import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { SessionInfo, TimelineItem } from '../../../src/page/data.ts';
import type { Go } from '../app.tsx';
import { useSource } from '../data/data.tsx';
import { useVirtual } from '../list/virtual.ts';
import { copied } from '../parts/command.tsx';
import { useKeys } from '../parts/keys.ts';
import { type Blocks, blockSize } from './blocks.ts';
import { type FeedRow, feedRows, rowAt, rowInstead } from './feed-rows.ts';
import { type FindingsByPlace, findingsAt } from './findings-at.ts';
import { FoldsOf } from './fold.tsx';
import { Item, nameOf } from './item.tsx';
import { useFolds } from './use-folds.ts';

/** About how high an item is, in pixels, until it is drawn; and the most that all of a list can be. */
const itemHeight = 96;
const heightMax = 12_000_000;

/** How long the end stays in view, at most, while rows turn out to be higher, in milliseconds. */
const settlingMs = 2_000;

interface FeedOptions {
  readonly info: SessionInfo;
  readonly blocks: Blocks;
  /** Changes with what is loaded. */
  readonly round: number;
  /** The position to begin at, and whether the address names it. */
  readonly target: { readonly seq: number; readonly isMarked: boolean };
  readonly findings: FindingsByPlace;
  /** Shows what has a position that no row has, if something else of the page does. */
  readonly reveal: (seq: number) => void;
  /** Gets the position that is at the top of the view. */
  readonly view: { current: number };
  readonly go: Go;
}

/** The timeline of a session, of which the rows in view are drawn, and the blocks around them loaded. */
export function Feed({ info, blocks, round, target, findings, reveal, view, go }: FeedOptions) {
  const { session, base } = info;
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useMemo(
    () => feedRows({ count: blocks.count, items: (n) => blocks.items(n) }, base),
    [blocks, round],
  );
  const keyOf = useMemo(() => (index: number) => rows[index]?.key ?? -index, [rows]);
  const blockHeight = Math.min(blockSize * itemHeight, heightMax / Math.max(1, blocks.count));
  const virtual = useVirtual(scroller, {
    count: rows.length,
    overscan: 4,
    getItemKey: keyOf,
    estimateSize: (index) => (rows[index]?.type === 'block' ? blockHeight : itemHeight),
  });
  const drawn = virtual.getVirtualItems();
  const folds = useFolds();
  const [active, setActive] = useState<number>();
  const [marked, mark] = useState<number>();
  const [said, say] = useState('');

  // Until the target is loaded, nothing else is.
  const placed = useRef<typeof target>(undefined);
  const isAtEnd = useRef(false);
  // Until its reader does something, what goes on stays at its end while rows turn out to be higher.
  const isSettling = useRef(false);
  const anchor = useRef<{ readonly row: FeedRow; readonly into: number; readonly size: number }>(undefined);
  const first = rows[drawn[0]?.index ?? 0]?.block ?? 0;
  const last = rows[drawn.at(-1)?.index ?? 0]?.block ?? 0;
  useEffect(() => {
    if (placed.current === target) blocks.want(first, last);
    else {
      const block = blocks.blockOf(target.seq);
      blocks.want(block, block);
    }
  });

  const shown = useRef(rows);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    if (placed.current !== target) {
      if (blocks.items(blocks.blockOf(target.seq)) === undefined) return;
      placed.current = target;
      shown.current = rows;
      const found = rowAt(rows, target.seq);
      if (target.isMarked && found?.isExact !== true) reveal(target.seq);
      if (found === undefined) return;
      isSettling.current = isAtEnd.current =
        !target.isMarked && target.seq === blocks.head && info.tone === 'open';
      virtual.scrollToIndex(found.index, {
        align: target.isMarked ? 'center' : isAtEnd.current ? 'end' : 'start',
      });
      const row = rows[found.index];
      mark(target.isMarked ? row?.key : undefined);
      if (!target.isMarked) return;
      if (found.part !== undefined) folds.turn(`${itemOf(row)?.seq}.${found.part}`, true);
      setActive(row?.key);
      requestAnimationFrame(() => focusItem(element, row?.key));
      return;
    }
    if (shown.current !== rows) {
      shown.current = rows;
      if (isAtEnd.current && info.tone === 'open') virtual.scrollToIndex(rows.length - 1, { align: 'end' });
      else if (anchor.current !== undefined) {
        const { row, into, size } = anchor.current;
        const now = rowInstead(rows, row, size > 0 ? Math.min(1, into / size) : 0);
        const start = now === undefined ? undefined : virtual.measurementsCache[now.index]?.start;
        if (start !== undefined) virtual.scrollToOffset(start + (now?.isSame === true ? into : 0));
      }
      return;
    }
    if (isSettling.current) {
      element.scrollTop = element.scrollHeight;
      return;
    }
    const top = element.scrollTop;
    isAtEnd.current = top + element.clientHeight >= element.scrollHeight - 48;
    const item = virtual.getVirtualItemForOffset(top);
    const row = item === undefined ? undefined : rows[item.index];
    if (item !== undefined && row !== undefined)
      anchor.current = { row, into: top - item.start, size: item.size };
    view.current = itemOf(row)?.seq ?? view.current;
  });

  const settle = () => {
    isSettling.current = false;
  };
  useEffect(() => {
    const timer = setTimeout(settle, settlingMs);
    return () => clearTimeout(timer);
  }, [target]);
  const at = rows.findIndex(({ key }) => key === active);
  const moveTo = (index: number) => {
    const row = rows[index];
    if (row === undefined) return;
    settle();
    virtual.scrollToIndex(index, { align: 'auto' });
    setActive(row.key);
    requestAnimationFrame(() => requestAnimationFrame(() => focusItem(scroller.current, row.key)));
  };
  const step = (by: 1 | -1) => {
    const from =
      at >= 0 ? at + by : (virtual.getVirtualItemForOffset(scroller.current?.scrollTop ?? 0)?.index ?? 0);
    moveTo(Math.max(0, Math.min(rows.length - 1, from)));
  };
  const item = itemOf(rows[at]);
  const line = item?.commands[0]?.line;
  const { data } = useSource();
  const toTrace = { page: 'trace', session, seq: item?.seq ?? 0 } as const;
  useKeys([
    { keys: ['j', 'ArrowDown'], what: 'next item', act: () => step(1) },
    { keys: ['k', 'ArrowUp'], what: 'item before', act: () => step(-1) },
    { keys: ['Home', 'g g'], what: 'first item', act: () => moveTo(0) },
    { keys: ['End', 'G'], what: 'last item', act: () => moveTo(rows.length - 1) },
    {
      keys: ['o'],
      what: 'fold or unfold what the item has folded (Enter, too)',
      act: () => folds.turnAll(itemElement(scroller.current, active)),
    },
    {
      keys: ['s'],
      what: 'see what the model saw',
      act: () => item !== undefined && go({ page: 'seen', session, seq: item.seq }),
    },
    ...(data.has(toTrace)
      ? [
          {
            keys: ['t'],
            what: 'trace where the item came from',
            act: () => item !== undefined && go(toTrace),
          },
        ]
      : []),
    {
      keys: ['c'],
      what: 'copy the command that forks there',
      act: () => {
        if (line === undefined) return;
        void copied(line).then((isThere) => say(isThere ? `Copied ${line}` : line));
      },
    },
  ]);
  useEffect(() => {
    if (said === '') return undefined;
    const timer = setTimeout(() => say(''), 3000);
    return () => clearTimeout(timer);
  }, [said]);

  const settled = { onWheel: settle, onTouchStart: settle, onPointerDown: settle, onKeyDown: settle };
  const positions = blocks.head - blocks.floor;
  const look = (row: FeedRow) => {
    if (row.type === 'block') return <p class="faint">…</p>;
    if (row.type === 'own') return <OwnFrom info={info} />;
    return (
      <Item
        {...{ session, item: row.item, waiting: info.waiting }}
        findings={findingsAt(findings, session, row.item)}
      />
    );
  };
  return (
    <FoldsOf.Provider value={folds}>
      <div class="rows feed-rows" ref={scroller} {...settled}>
        {rows.length === 0 && <p class="empty">Nothing was said yet.</p>}
        <div
          class="feed"
          {...(drawn.length > 0 && {
            role: 'feed' as const,
            'aria-label': `Timeline of ${session}`,
            'aria-busy': blocks.loaded === 0,
          })}
          style={{ height: `${virtual.getTotalSize()}px` }}
        >
          {drawn.map(({ index, start }, i) => {
            const row = rows[index];
            if (row === undefined) return null;
            const own = itemOf(row);
            return (
              <article
                key={row.key}
                ref={(element) => virtual.measureElement(element)}
                data-index={index}
                data-key={row.key}
                class={classOf(row, row.key === marked)}
                style={{
                  transform: `translateY(${start}px)`,
                  ...(row.type === 'block' && { height: `${blockHeight}px` }),
                }}
                tabIndex={row.key === active || (active === undefined && i === 0) ? 0 : -1}
                aria-label={own === undefined ? 'Not loaded yet' : `${nameOf(own)} @${own.seq}`}
                aria-posinset={own === undefined ? undefined : own.seq - blocks.floor}
                aria-setsize={positions}
                onFocusIn={() => setActive(row.key)}
                onKeyDown={(event) => {
                  if (event.key !== 'Enter' || event.target !== event.currentTarget) return;
                  event.preventDefault();
                  folds.turnAll(event.currentTarget);
                }}
              >
                {look(row)}
              </article>
            );
          })}
        </div>
      </div>
      <p class={said === '' ? 'said unseen' : 'said'} role="status">
        {said}
      </p>
    </FoldsOf.Provider>
  );
}

function itemOf(row: FeedRow | undefined): TimelineItem | undefined {
  return row?.type === 'item' ? row.item : undefined;
}

/** Where the entries of a session itself begin. */
export function OwnFrom({ info: { origin } }: { readonly info: SessionInfo }) {
  return <p class="own-from">What is above is inherited{origin !== undefined && ` from ${origin}`}.</p>;
}

/** The classes of a row. */
export function classOf(row: FeedRow, isMarked = false): string {
  if (row.type === 'block') return 'item not-loaded';
  if (row.type === 'own') return 'item own';
  const { kind, role, aside, hiddenBy, inherited, child } = row.item;
  return [
    'item',
    child?.state === 'discarded' ? 'is-discard' : `is-${kind}`,
    ...(child?.tone === 'bad' ? ['is-failed'] : []),
    ...(role === undefined ? [] : [`by-${aside === true ? 'aside' : role}`]),
    ...(hiddenBy === undefined ? [] : ['hidden-branch']),
    ...(inherited ? ['inherited'] : []),
    ...(isMarked ? ['target'] : []),
  ].join(' ');
}

function itemElement(scroller: HTMLElement | null, key: number | undefined): HTMLElement | null {
  return scroller?.querySelector<HTMLElement>(`[data-key="${key}"]`) ?? null;
}

function focusItem(scroller: HTMLElement | null, key: number | undefined): void {
  itemElement(scroller, key)?.focus({ preventScroll: true });
}
