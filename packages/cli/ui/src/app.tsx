import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { HomeInfo, Liveness, PageEvent } from '../../src/page/data.ts';
import type { Asks } from './data/asks.ts';
import { type Source, SourceOf } from './data/data.tsx';
import { Check } from './pages/check.tsx';
import { Diff } from './pages/diff.tsx';
import { Lineage } from './pages/lineage.tsx';
import { Missing } from './pages/missing.tsx';
import { Seen } from './pages/seen.tsx';
import { Session } from './pages/session.tsx';
import { Sessions } from './pages/sessions.tsx';
import { Trace } from './pages/trace.tsx';
import { Usage } from './pages/usage.tsx';
import { Header } from './parts/header.tsx';
import { KeyList } from './parts/key-list.tsx';
import { listenToKeys, useKeys } from './parts/keys.ts';
import { closeMenus } from './parts/menus.ts';
import { addressOf, type Route, routeOf } from './route.ts';

/** Goes to another route. The same page with another choice is no new step of the history, and keeps the focus. */
export type Go = (route: Route, how?: { readonly isSame: boolean }) => void;

/** The page: its head, and the part that its address names. */
export function App({ data, home: first }: { readonly data: Asks; readonly home: HomeInfo }) {
  const [address, setAddress] = useState(location.hash);
  const [isHelp, setHelp] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  const main = useRef<HTMLElement>(null);
  const { liveness, source } = useFollowed(data, first);
  const route = useMemo(() => routeOf(address), [address]);

  useEffect(() => {
    const moved = () => setAddress(location.hash);
    addEventListener('hashchange', moved);
    // It can have changed before there was anything to hear it.
    moved();
    return () => removeEventListener('hashchange', moved);
  }, []);
  useEffect(() => listenToKeys(window), []);
  useEffect(() => closeMenus(window), []);
  const go: Go = (to, { isSame = false } = { isSame: false }) => {
    if (isSame) {
      history.replaceState(null, '', addressOf(to));
      setAddress(addressOf(to));
    } else location.hash = addressOf(to);
  };

  // A screen reader begins at the title of a page that is opened.
  const place = placeOf(route);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${titleOf(route)} · ${first.title} · Tapedeck`;
  }, [address]);
  useEffect(() => {
    if (!isFirst.current && document.activeElement !== search.current)
      main.current?.querySelector('h1')?.focus();
    isFirst.current = false;
  }, [place]);

  useKeys([
    { keys: ['/'], what: 'find sessions', act: () => search.current?.select() },
    { keys: ['g s'], what: 'go to the sessions', act: () => go({ page: 'sessions' }) },
    { keys: ['g l'], what: 'go to the lineage', act: () => go({ page: 'graph' }) },
    { keys: ['g u'], what: 'go to the usage', act: () => go({ page: 'usage' }) },
    { keys: ['g c'], what: 'go to the checks', act: () => go({ page: 'check' }) },
    { keys: ['?'], what: 'list the keys', act: () => setHelp(true) },
  ]);

  return (
    <SourceOf.Provider value={source}>
      <Header
        {...{ home: source.home, route, liveness, search, go }}
        help={() => setHelp(true)}
        skip={() => main.current?.querySelector('h1')?.focus()}
        leave={() => focusList(main.current)}
      />
      <main ref={main} class={`page-${route?.page ?? 'missing'}`}>
        <PageOf key={place} route={route} go={go} />
      </main>
      {isHelp && <KeyList close={() => setHelp(false)} />}
    </SourceOf.Provider>
  );
}

/** Gives the focus to the list of a page, to what says that this is empty, or to its title. */
function focusList(main: HTMLElement | null): void {
  const list = main?.querySelector<HTMLElement>('.rows[tabindex], .empty[tabindex]');
  (list ?? main?.querySelector('h1'))?.focus();
}

function PageOf({ route, go }: { readonly route: Route | undefined; readonly go: Go }) {
  switch (route?.page) {
    case 'sessions':
      return <Sessions choice={route} go={go} />;
    case 'graph':
      return <Lineage {...(route.session !== undefined && { session: route.session })} go={go} />;
    case 'session':
      return <Session session={route.session} seq={route.seq} go={go} />;
    case 'seen':
      return <Seen session={route.session} seq={route.seq} go={go} />;
    case 'trace':
      return <Trace session={route.session} seq={route.seq} go={go} />;
    case 'diff':
      return <Diff a={route.a} b={route.b} go={go} />;
    case 'usage':
      return <Usage {...(route.session !== undefined && { session: route.session })} />;
    case 'check':
      return <Check {...(route.session !== undefined && { session: route.session })} />;
    default:
      return <Missing />;
  }
}

/** What stays the same while a page is open. */
function placeOf(route: Route | undefined): string {
  if (route === undefined) return '';
  if (route.page === 'sessions') return 'sessions';
  return route.page === 'session' ? addressOf({ page: 'session', session: route.session }) : addressOf(route);
}

function titleOf(route: Route | undefined): string {
  if (route === undefined) return 'Not found';
  switch (route.page) {
    case 'sessions':
      return 'Sessions';
    case 'graph':
      return route.session === undefined ? 'Lineage' : `Lineage of ${route.session}`;
    case 'usage':
      return route.session === undefined ? 'Usage' : `Usage of ${route.session}`;
    case 'check':
      return 'Checks';
    case 'diff':
      return `${route.a} and ${route.b}`;
    default:
      return route.seq === undefined ? route.session : `${route.session}@${route.seq}`;
  }
}

/** Follows the home, and hands its changes to the parts that listen. */
function useFollowed(
  data: Asks,
  home: HomeInfo,
): { readonly liveness: Liveness | undefined; readonly source: Source } {
  const [liveness, setLiveness] = useState<Liveness>();
  const listeners = useMemo(() => new Set<(event: PageEvent) => void>(), []);
  useEffect(() => {
    const stop = new AbortController();
    data.follow?.(
      home.at,
      {
        event: (event) => {
          for (const listener of listeners) listener(event);
        },
        liveness: setLiveness,
      },
      stop.signal,
    );
    return () => stop.abort();
  }, [data, home]);
  const source = useMemo<Source>(
    () => ({
      data,
      home,
      listen: (listener) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    }),
    [data, home],
  );
  return { liveness, source };
}
