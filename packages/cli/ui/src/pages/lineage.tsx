import { useMemo, useState } from 'preact/hooks';
import type { LineageRow, PageEvent } from '../../../src/page/data.ts';
import type { Go } from '../app.tsx';
import { useCalmly, useChanges, useSource } from '../data/data.tsx';
import { usePaged } from '../data/paged.ts';
import { Lanes } from '../graph/lanes.tsx';
import type { Sizes } from '../graph/strokes.ts';
import { Cell } from '../list/cell.tsx';
import { useNarrow } from '../list/narrow.ts';
import { Rows } from '../list/rows.tsx';
import { Toggle } from '../parts/choices.tsx';
import { CommandLine } from '../parts/command.tsx';
import { Heading } from '../parts/heading.tsx';
import { useKeys } from '../parts/keys.ts';
import { Legend } from '../parts/legend.tsx';
import { Loading } from '../parts/loading.tsx';
import { Nothing } from '../parts/nothing.tsx';
import { Ago, grouped } from '../parts/numbers.tsx';
import { Refused } from '../parts/refused.tsx';
import { Kind, SessionName } from '../parts/session-name.tsx';
import { addressOf, routeOf } from '../route.ts';

/** How large rows are drawn, from all at once to the most readable. */
const zooms = [
  { height: 18, lane: 11 },
  { height: 28, lane: 15 },
  { height: 46, lane: 19 },
] as const;

/** The most lanes of a row, on a wide page and on a narrow one. */
const most = { wide: 24, narrow: 7 };

/** The lineage as a graph: all trees, the newest first, or the family of a session. */
export function Lineage({ session, go }: { readonly session?: string; readonly go: Go }) {
  const { data, home } = useSource();
  // Of a family, and in a file, nothing is folded but what its reader folds.
  const isFolded = session === undefined && home.isLive;
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [all, setAll] = useState(false);
  const [zoom, setZoom] = useState<number>(1);
  const isNarrow = useNarrow();
  const query = useMemo(
    () => ({
      ...(session !== undefined && { session }),
      opened: [...opened],
      closed: [...closed],
      ...(all && { all }),
    }),
    [session, opened, closed, all],
  );
  const [command, setCommand] = useState('');
  const rows = usePaged<LineageRow>(
    async (offset) => {
      const part = await data.lineage({ ...query, offset });
      setCommand(part.command);
      return part;
    },
    JSON.stringify(query),
    { keepsPlace: true },
  );
  const reload = useCalmly(rows.again);
  useChanges((event) => {
    rows.patch((row) => changed(row, event));
    if (event.what !== 'entries') reload();
  });

  const size = zooms[zoom] ?? zooms[1];
  const sizes: Sizes = { ...size, most: isNarrow ? most.narrow : most.wide };
  const scale = (step: number) => setZoom(Math.max(0, Math.min(zooms.length - 1, zoom + step)));
  const goesOn = (row: LineageRow, index: number) => (rows.at(index + 1)?.depth ?? 0) > row.depth;
  const fold = (row: LineageRow, isOpen: boolean) => {
    const { id } = row;
    if (id === undefined) return;
    if (isOpen && closed.has(id)) setClosed(without(closed, id));
    // What the server folded is below the session, or stands for some of its children.
    else if (isOpen && isLeft(row)) setOpened(new Set([...opened, id]));
    else if (!isOpen && opened.has(id)) setOpened(without(opened, id));
    else if (!isOpen && row.shape === 'session' && !closed.has(id)) setClosed(new Set([...closed, id]));
  };
  const turnAll = () => {
    setClosed(new Set());
    setOpened(new Set());
    setAll(!all);
  };
  useKeys([
    { keys: ['+', '='], what: 'larger rows', act: () => scale(1) },
    { keys: ['-'], what: 'smaller rows', act: () => scale(-1) },
    ...(isFolded ? [{ keys: ['a'], what: 'unfold all, or fold again', act: turnAll }] : []),
  ]);

  return (
    <>
      <Heading
        title={
          session === undefined ? (
            'Lineage'
          ) : (
            <>
              Lineage of <span class="break">{session}</span>
            </>
          )
        }
      >
        {command !== '' && <CommandLine line={command} />}
        <div class="tools">
          {session !== undefined && <a href={addressOf({ page: 'graph' })}>All sessions</a>}
          {isFolded && <Toggle label="Unfold all" isOn={all} turn={turnAll} />}
          <fieldset class="choice">
            <legend class="unseen">Size of the rows</legend>
            <button type="button" aria-label="Smaller rows" disabled={zoom === 0} onClick={() => scale(-1)}>
              −
            </button>
            <button
              type="button"
              aria-label="Larger rows"
              disabled={zoom === zooms.length - 1}
              onClick={() => scale(1)}
            >
              +
            </button>
          </fieldset>
          <Legend />
        </div>
      </Heading>
      {rows.error !== undefined && <Refused error={rows.error} again={rows.again} />}
      {!rows.isLoaded && rows.error === undefined && <Loading again={rows.askAgain} />}
      {rows.isLoaded && rows.count === 0 ? (
        <Nothing>There are no sessions yet.</Nothing>
      ) : (
        <Rows<LineageRow>
          label="Lineage"
          isTree
          height={sizes.height}
          count={rows.count}
          place={session ?? ''}
          at={rows.at}
          want={rows.want}
          keyOf={keyOf}
          act={(row) => {
            if (row.shape === 'more') fold(row, true);
            const address = addressOfRow(row);
            const to = address === undefined ? undefined : routeOf(address);
            if (to !== undefined) go(to);
          }}
          fold={fold}
          look={(row, index) => ({
            class: `lineage zoom-${zoom} is-${row.shape}${row.depth === 0 ? ' root' : ''}`,
            level: row.depth + 1,
            ...(isLeft(row) && (row.shape === 'more' || !goesOn(row, index))
              ? { isOpen: false }
              : goesOn(row, index) && { isOpen: true }),
            cells: (
              <Fields
                {...{ row, sizes, fold }}
                goesOn={goesOn(row, index)}
                isSelf={row.session === session}
              />
            ),
          })}
        />
      )}
    </>
  );
}

function keyOf({ id = '', shape, label, seq }: LineageRow): string {
  return shape === 'session' && id !== '' ? id : `${id} ${shape} ${seq ?? ''} ${label}`;
}

/** Where a row leads: to a session, or an entry. What is folded leads nowhere: it is unfolded. */
function addressOfRow({ shape, session, seq }: LineageRow): string | undefined {
  if (session === undefined || shape === 'more') return undefined;
  return addressOf({ page: 'session', session, ...(seq !== undefined && { seq }) });
}

/** Whether a row stands for sessions that are left out. */
function isLeft({ shape, sessions, closed = false }: LineageRow): boolean {
  return closed || shape === 'more' || sessions > 1;
}

function without(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return new Set([...ids].filter((one) => one !== id));
}

/** A row with what an event says, until the rows are loaded anew. */
function changed(row: LineageRow, { id, head, state, tone }: PageEvent): LineageRow {
  return row.shape === 'session' && row.id === id ? { ...row, head, state, tone } : row;
}

interface FieldsOptions {
  readonly row: LineageRow;
  /** Whether the next row stands on its lane. */
  readonly goesOn: boolean;
  readonly sizes: Sizes;
  readonly fold: (row: LineageRow, isOpen: boolean) => void;
  /** Whether it is the session whose family is shown. */
  readonly isSelf: boolean;
}

function Fields({ row, goesOn, sizes, fold, isSelf }: FieldsOptions) {
  const { shape, label, session, kind, state, tone, about, head, at, sessions } = row;
  const isFolded = isLeft(row) && !goesOn;
  const address = addressOfRow(row);
  if (shape !== 'session' || session === undefined)
    return (
      <Cell class="node">
        <Lanes {...{ row, goesOn, sizes }} />
        <span class="text">
          {shape === 'more' ? (
            <button
              type="button"
              class="cover mark-name unfold"
              tabIndex={-1}
              title="Unfold"
              onClick={() => fold(row, true)}
            >
              {label}
            </button>
          ) : address === undefined ? (
            <span class="soft">{label}</span>
          ) : (
            <a class="cover mark-name" href={address} tabIndex={-1}>
              <MarkName row={row} />
            </a>
          )}
        </span>
      </Cell>
    );
  return (
    <>
      <Cell class="node">
        <Lanes {...{ row, goesOn, sizes }} />
        {(goesOn || isFolded) && (
          <button
            type="button"
            class="fold"
            tabIndex={-1}
            aria-label={`${isFolded ? 'Unfold' : 'Fold'} ${session}`}
            onClick={() => fold(row, isFolded)}
          >
            <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
              <path d={isFolded ? 'M3.5 2 6.5 5 3.5 8' : 'M2 3.5 5 6.5 8 3.5'} />
            </svg>
          </button>
        )}
        <span class={goesOn || isFolded ? 'text' : 'text leaf'}>
          <a class={`cover${isSelf ? ' self' : ''}`} href={address ?? '#/'} tabIndex={-1}>
            <SessionName session={row.name ?? session} parent={row.parent} />
          </a>
          {kind !== undefined && <Kind kind={kind} />}
          {sessions > 1 && <span class="chip">{grouped(sessions - 1)} below</span>}
          <span class="about">{about}</span>
        </span>
      </Cell>
      <Cell class="edges">
        <Edges row={row} />
      </Cell>
      <Cell class={`words tone-${tone ?? 'plain'}`}>{state}</Cell>
      <Cell class="number">{head !== undefined && `@${head}`}</Cell>
      <Cell class="when">{at !== undefined && <Ago at={at} />}</Cell>
    </>
  );
}

/** What stands on a lane, in words. */
function MarkName({ row: { shape, session, label, merges: [merge] = [] } }: { readonly row: LineageRow }) {
  if (shape !== 'merge' || merge === undefined) return <>{label}</>;
  const { child, range, seq, state, undone = false } = merge;
  return (
    <>
      {state} <SessionName session={child} parent={session} />
      {range !== undefined && ` ${range.join('-')}`} @{seq}
      {undone && ' (undone)'}
    </>
  );
}

/** Where a session was merged. */
function Edges({ row: { merges = [] } }: { readonly row: LineageRow }) {
  return (
    <>
      {merges.map(({ into, seq, state, undone = false }) => (
        <a
          key={seq}
          class="edge"
          href={addressOf({ page: 'session', session: into, seq })}
          tabIndex={-1}
          title={`${state} there`}
        >
          {state === 'merged' ? '→' : '×'} {into}@{seq}
          {undone && ' (undone)'}
        </a>
      ))}
    </>
  );
}
