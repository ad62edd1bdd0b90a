import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { HomeInfo, Liveness } from '../../../src/page/data.ts';
import { useSource } from '../data/data.tsx';
import { addressOf, type Route, splitPlace } from '../route.ts';
import { clock } from './numbers.tsx';
import { useTheme } from './theme.ts';

const pages = [
  { page: 'sessions', name: 'Sessions' },
  { page: 'graph', name: 'Lineage' },
  { page: 'usage', name: 'Usage' },
  { page: 'check', name: 'Checks' },
] as const;

interface HeaderOptions {
  readonly home: HomeInfo;
  readonly route: Route | undefined;
  readonly liveness: Liveness | undefined;
  readonly search: RefObject<HTMLInputElement | null>;
  readonly go: (route: Route, how?: { readonly isSame: boolean }) => void;
  readonly help: () => void;
  /** Goes to the content. */
  readonly skip: () => void;
  /** Goes to the list of the page. */
  readonly leave: () => void;
}

/** The head of the page: where one is, where one can go, and whether changes arrive. */
export function Header({ home, route, liveness, search, go, help, skip, leave }: HeaderOptions) {
  const [theme, turn] = useTheme();
  return (
    <header class="header">
      <a
        class="skip"
        href={route === undefined ? '#/' : addressOf(route)}
        onClick={(event) => {
          event.preventDefault();
          skip();
        }}
      >
        Skip to the content
      </a>
      <a class="brand" href="#/">
        <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
          <path d="M4 13.5v-11M4 11c0-4.5 7.5-2.5 7.5-6.5" />
          <circle cx="11.5" cy="3.5" r="1.75" />
        </svg>
        Tapedeck
      </a>
      <span class="home" title={home.title}>
        {home.title}
      </span>
      <nav aria-label="Pages">
        {pages.map(({ page, name }) => (
          <a key={page} href={addressOf({ page })} aria-current={isIn(route, page) ? 'page' : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <Find {...{ route, search, go, leave }} />
      <LiveState home={home} liveness={liveness} />
      <button
        type="button"
        class="tool"
        onClick={turn}
        title={`Colours: ${theme}`}
        aria-label={`Colours: ${theme}`}
      >
        <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
          <circle cx="8" cy="8" r="5.25" />
          {theme === 'system' && <path d="M8 2.75a5.25 5.25 0 0 1 0 10.5z" class="full" />}
          {theme === 'dark' && <circle cx="8" cy="8" r="5.25" class="full" />}
        </svg>
      </button>
      <button type="button" class="tool" onClick={help} title="Keys (?)" aria-label="Keys">
        ?
      </button>
    </header>
  );
}

/**
 * The field that finds sessions. What is typed is in the address. Enter goes on to what was found, and of `NAME@SEQ` to that
 * entry; Escape clears the field, and then leaves it.
 */
function Find({ route, search, go, leave }: Pick<HeaderOptions, 'route' | 'search' | 'go' | 'leave'>) {
  const found = route?.page === 'sessions' ? (route.find ?? '') : '';
  const [text, setText] = useState(found);
  const { data } = useSource();
  useEffect(() => {
    if (document.activeElement !== search.current) setText(found);
  }, [found]);
  const find = (typed: string) => {
    setText(typed);
    const choice = route?.page === 'sessions' ? route : { page: 'sessions' as const };
    go({ ...choice, find: typed }, { isSame: route?.page === 'sessions' });
  };
  const open = async (place: { readonly session: string; readonly seq: number }) => {
    // A name can end as a position does.
    const { rows } = await data.sessions({ find: text, all: true }).catch(() => ({ rows: [] }));
    const isName = rows.some(({ session }) => session === text);
    go({ page: 'session', ...(isName ? { session: text } : place) });
  };
  return (
    <search class="find">
      <input
        ref={search}
        type="search"
        value={text}
        placeholder="Find sessions"
        aria-label="Find sessions, or go to NAME@SEQ"
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => find(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' && event.key !== 'Escape') return;
          event.preventDefault();
          const [session, seq] = splitPlace(text);
          if (event.key === 'Escape' && text !== '') {
            setText('');
            if (found !== '') find('');
            return;
          }
          leave();
          if (event.key === 'Enter' && seq !== undefined) void open({ session, seq });
        }}
      />
      <span class="key" aria-hidden="true">
        /
      </span>
    </search>
  );
}

function LiveState({ home, liveness }: Pick<HeaderOptions, 'home' | 'liveness'>) {
  const { exported } = home;
  const [name, words, title] =
    exported !== undefined
      ? [
          'exported',
          `Exported ${exported.at.slice(0, 10)}`,
          exported.redacted > 0 ? `${exported.redacted} secrets were replaced` : exported.at,
        ]
      : liveness === 'live'
        ? ['live', 'Live', 'Changes are shown as they are committed']
        : liveness === 'ended'
          ? ['ended', 'Ended', 'tape ui has ended: start it again, and open the address that it prints']
          : liveness === 'lost'
            ? [
                'lost',
                'Not connected',
                'tape ui has ended, or its home is not there. The page goes on when they are',
              ]
            : liveness === undefined
              ? ['lost', 'Connecting', 'The connection to tape ui is being made']
              : [
                  'lost',
                  `No answer since ${clock(liveness.silentSince)}`,
                  'tape ui says nothing: it is stopped, or its machine is. The page goes on when it does',
                ];
  return (
    <span class={`live-state ${name}`} role="status" title={title}>
      {words}
    </span>
  );
}

/** Whether a route is a page of the head, or below it. */
function isIn(route: Route | undefined, page: (typeof pages)[number]['page']): boolean {
  if (route === undefined) return false;
  const isSession =
    route.page === 'session' || route.page === 'seen' || route.page === 'trace' || route.page === 'diff';
  return route.page === page || (page === 'sessions' && isSession);
}
