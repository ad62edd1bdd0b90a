import { useRef } from 'preact/hooks';
import type { PageEvent, SessionRow, SessionsQuery } from '../../../src/page/data.ts';
import type { Go } from '../app.tsx';
import { useCalmly, useChanges, useSource } from '../data/data.tsx';
import { type Paged, usePaged } from '../data/paged.ts';
import { Cell, ColumnHead, HeadRow } from '../list/cell.tsx';
import { useNarrow } from '../list/narrow.ts';
import { Rows } from '../list/rows.tsx';
import { Choice, Toggle } from '../parts/choices.tsx';
import { State } from '../parts/glyph.tsx';
import { Heading } from '../parts/heading.tsx';
import { useKeys } from '../parts/keys.ts';
import { Loading } from '../parts/loading.tsx';
import { Nothing } from '../parts/nothing.tsx';
import { Ago, counted, grouped, short } from '../parts/numbers.tsx';
import { Refused } from '../parts/refused.tsx';
import { Kind, SessionName } from '../parts/session-name.tsx';
import { addressOf, type ListChoice } from '../route.ts';

const states = [
  ['', 'All'],
  ['open', 'Open'],
  ['merged', 'Merged'],
  ['failed', 'Failed'],
] as const;

const sorts = [
  ['last', 'by last message'],
  ['created', 'by creation'],
  ['name', 'by name'],
  ['messages', 'by messages'],
  ['tokens', 'by tokens'],
] as const;

/** Of how many rows the kinds can be chosen. */
const kindsFrom = 200;

/** The list of sessions. Its filters and its order are in the address. */
export function Sessions({ choice, go }: { readonly choice: ListChoice; readonly go: Go }) {
  const { data } = useSource();
  const { find, kind, state, sort = 'last', tree = false, all = false } = choice;
  const key = addressOf({ page: 'sessions', ...choice });
  const rows = usePaged<SessionRow>(
    async (offset) => await data.sessions({ ...queryOf(choice), offset }),
    key,
  );
  // How often a row has changed: each change is shown for a moment.
  const fresh = useRef(new Map<string, number>());
  const reload = useCalmly(rows.again);
  useChanges((event) => {
    // The first changes say what runs: nothing of that is new.
    if (event.what !== 'state') fresh.current.set(event.id, (fresh.current.get(event.id) ?? 0) + 1);
    rows.patch((row) => changed(row, event));
    reload();
  });
  const kinds = useKinds(rows);
  const choose = (more: ListChoice) => go({ page: 'sessions', ...choice, ...more }, { isSame: true });
  const turnTree = () => choose({ tree: !tree, sort: 'last' });
  useKeys([{ keys: ['t'], what: 'list as a tree, or not', act: turnTree }]);
  const isNarrow = useNarrow();
  const isFiltered = [find, kind, state].some((one) => one !== undefined && one !== '');

  return (
    <>
      <Heading title="Sessions">
        <span class="soft count" role="status">
          {rows.isLoaded &&
            (rows.isCounted
              ? counted(rows.count, 'session')
              : `more than ${grouped(rows.count - 1)} sessions`)}
        </span>
        <div class="tools">
          <Choice
            label="State"
            options={states}
            value={state ?? ''}
            choose={(value) => choose({ state: (value || undefined) as ListChoice['state'] })}
          />
          <Toggle label="Tree" isOn={tree} turn={turnTree} />
          <select
            class="pick"
            aria-label="Kind"
            value={kind ?? ''}
            onChange={({ currentTarget: { value } }) => choose({ kind: value })}
          >
            <option value="">all kinds</option>
            {kinds.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          {!tree && (
            <select
              class="pick"
              aria-label="Sort"
              value={sort}
              onChange={({ currentTarget: { value } }) => choose({ sort: value as ListChoice['sort'] })}
            >
              {sorts.map(([value, name]) => (
                <option key={value} value={value}>
                  {name}
                </option>
              ))}
            </select>
          )}
          <Toggle label="Archived" isOn={all} turn={() => choose({ all: !all })} />
        </div>
      </Heading>
      {rows.error !== undefined && <Refused error={rows.error} again={rows.again} />}
      {!rows.isLoaded && rows.error === undefined && <Loading again={rows.askAgain} />}
      {rows.isLoaded && rows.count === 0 ? (
        <Nothing>{isFiltered ? 'No session is like that.' : 'There are no sessions yet.'}</Nothing>
      ) : (
        <Rows<SessionRow>
          label="Sessions"
          isTree={tree}
          height={isNarrow ? 54 : 34}
          count={rows.count}
          place={key}
          at={rows.at}
          want={rows.want}
          keyOf={({ id }) => id}
          act={({ session }) => go({ page: 'session', session })}
          head={isNarrow ? undefined : <Head sort={tree ? undefined : sort} choose={choose} />}
          look={(row) => ({
            ...(tree && { level: row.depth + 1, ...(row.children > 0 && { isOpen: true }) }),
            class: `session${freshClass(fresh.current.get(row.id))}`,
            cells: <Fields row={row} isNarrow={isNarrow} />,
          })}
        />
      )}
    </>
  );
}

/** The kinds that a user can choose: the usual ones, and those of the rows that were loaded. */
function useKinds({ count, at }: Pick<Paged<SessionRow>, 'count' | 'at'>): readonly string[] {
  const seen = useRef(new Set(['session', 'subagent']));
  for (let i = 0; i < Math.min(count, kindsFrom); i += 1) {
    const kind = at(i)?.kind;
    if (kind !== undefined) seen.current.add(kind);
  }
  return [...seen.current];
}

/** Two names for one look: another one begins its animation anew. */
function freshClass(changes: number | undefined): string {
  return changes === undefined ? '' : ` fresh-${changes % 2}`;
}

/** A row with what an event says, until the list is loaded anew. */
function changed(row: SessionRow, { id, head, state, tone }: PageEvent): SessionRow {
  return row.id === id ? { ...row, head, state, tone } : row;
}

function Fields({ row, isNarrow }: { readonly row: SessionRow; readonly isNarrow: boolean }) {
  const { session, kind, state, tone, about, messages, tokens, children, lastMessageAt, depth } = row;
  return (
    <>
      <Cell class="name">
        {depth > 0 && <Indent depth={depth} />}
        <State state={state} tone={tone} isBrief={!isNarrow} />
        <a href={addressOf({ page: 'session', session })} tabIndex={-1} class="cover">
          <SessionName session={row.name ?? session} parent={row.parent} />
        </a>
        <Kind kind={kind} />
      </Cell>
      <Cell class="about">{about}</Cell>
      {!isNarrow && (
        <>
          <Cell class={`words tone-${tone}`}>{state}</Cell>
          <Count n={messages} what="messages" />
          <Count n={tokens} what="tokens" />
          <Count n={children} what="children" />
        </>
      )}
      <Cell class="when">
        <Ago at={lastMessageAt ?? row.createdAt} />
      </Cell>
    </>
  );
}

function Indent({ depth }: { readonly depth: number }) {
  const shown = Math.min(depth, 8);
  return <span class="indent" style={{ width: `${shown * 14}px` }} aria-hidden="true" />;
}

function Count({ n, what }: { readonly n: number; readonly what: string }) {
  return (
    <Cell class="number" title={`${grouped(n)} ${what}`}>
      {n === 0 ? <span class="faint">–</span> : short(n)}
    </Cell>
  );
}

const columns = [
  ['name', 'Session', 'name'],
  [undefined, 'About', 'about'],
  [undefined, 'State', 'words'],
  ['messages', 'Messages', 'number'],
  ['tokens', 'Tokens', 'number'],
  [undefined, 'Children', 'number'],
  ['last', 'Last', 'when'],
] as const;

/** The names of the columns, by some of which the list is sorted. */
function Head({
  sort,
  choose,
}: {
  readonly sort: ListChoice['sort'];
  readonly choose: (choice: ListChoice) => void;
}) {
  const sortedBy = (by: string | undefined) => {
    if (by === undefined || by !== sort) return undefined;
    return by === 'name' ? 'ascending' : 'descending';
  };
  return (
    <HeadRow class="session">
      {columns.map(([by, name, look]) => (
        <ColumnHead key={name} class={look} sorted={sortedBy(by)}>
          {by === undefined ? (
            name
          ) : (
            <button type="button" onClick={() => choose({ sort: by, tree: false })}>
              {name}
            </button>
          )}
        </ColumnHead>
      ))}
    </HeadRow>
  );
}

/** What is asked of a choice. */
function queryOf({ find, kind, state, sort, tree, all }: ListChoice): SessionsQuery {
  return {
    ...(find && { find }),
    ...(kind && { kind }),
    ...(state && { state }),
    ...(sort && { sort }),
    ...(tree && { tree }),
    ...(all && { all }),
  };
}
