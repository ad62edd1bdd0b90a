import { useMemo } from 'preact/hooks';
import type { SessionInfo } from '../../../src/page/data.ts';
import { grouped } from '../parts/numbers.tsx';
import { addressOf } from '../route.ts';
import { classOf, OwnFrom } from './feed.tsx';
import { type FeedRow, feedRows } from './feed-rows.ts';
import { type FindingsByPlace, findingsAt } from './findings-at.ts';
import { FoldsOf } from './fold.tsx';
import { Item } from './item.tsx';
import type { Printed } from './to-print.ts';

/** A session on paper: all of it, unfolded. It is not shown on a screen. */
export function PrintedFeed({
  info,
  printed,
  findings,
}: {
  readonly info: SessionInfo;
  readonly printed: Printed;
  readonly findings: FindingsByPlace;
}) {
  const { session, base, waiting } = info;
  const rows = useMemo(() => feedRows({ count: 1, items: () => printed.items }, base), [printed, base]);
  const look = (row: FeedRow) => {
    if (row.type !== 'item') return <OwnFrom info={info} />;
    const { item } = row;
    return <Item {...{ session, item, waiting }} findings={findingsAt(findings, session, item)} />;
  };
  return (
    <FoldsOf.Provider value={allOpen}>
      <PrintedNote info={info} printed={printed} />
      <div class="feed printed">
        {rows.map((row) => (
          <article key={row.key} class={classOf(row)}>
            {look(row)}
          </article>
        ))}
      </div>
    </FoldsOf.Provider>
  );
}

/** Hidden branches are printed where the page shows them. */
const allOpen = { isOpen: (id: string) => !/\.(?:commands|hidden)$/.test(id), turn: () => {} };

/** Which part of the session is printed. */
function PrintedNote({
  info: { session, floor, head, commands },
  printed: { from, to, error },
}: {
  readonly info: SessionInfo;
  readonly printed: Printed;
}) {
  const print = commands.find(({ what }) => what === 'Print it')?.line;
  const isWhole = from === floor + 1 && to === head;
  return (
    <p class="printed-note">
      {addressOf({ page: 'session', session })}, printed {new Date().toLocaleString('en-GB')}:{' '}
      {isWhole
        ? `all ${grouped(head - floor)} positions.`
        : `positions ${grouped(from)} to ${grouped(to)} of ${grouped(floor + 1)} to ${grouped(head)}.`}
      {error !== undefined &&
        ` What comes behind could not be loaded: ${error instanceof Error ? error.message : String(error)}.`}
      {error === undefined &&
        !isWhole &&
        ' This is as much as the page prints at a time, from where it was scrolled to.'}
      {!isWhole && print !== undefined && (
        <>
          {' '}
          All of it: <code>{print}</code>
        </>
      )}
    </p>
  );
}
