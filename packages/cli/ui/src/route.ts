import type { SessionsQuery } from '../../src/page/data.ts';

/** How the list of sessions is filtered and sorted, as its address has it. */
export type ListChoice = {
  readonly [Name in 'find' | 'kind' | 'state' | 'sort' | 'tree' | 'all']?: SessionsQuery[Name] | undefined;
};

/** What the page shows: a part of the address behind `#`. */
export type Route =
  | ({ readonly page: 'sessions' } & ListChoice)
  | { readonly page: 'graph'; readonly session?: string }
  | { readonly page: 'session'; readonly session: string; readonly seq?: number }
  | { readonly page: 'seen' | 'trace'; readonly session: string; readonly seq: number }
  | { readonly page: 'diff'; readonly a: string; readonly b: string }
  | { readonly page: 'usage' | 'check'; readonly session?: string };

/** First parts of addresses that are no sessions. A session of such a name has its first letter as `%67`. */
const reserved: ReadonlySet<string> = new Set(['graph', 'diff', 'usage', 'check']);

const states: ReadonlySet<string> = new Set(['open', 'merged', 'failed']);
const sorts: ReadonlySet<string> = new Set(['last', 'created', 'name', 'messages', 'tokens']);

/** The address of a route, with its `#`. */
export function addressOf(route: Route): string {
  return `#/${pathOf(route)}`;
}

/**
 * `SESSION@SEQ` in its parts, of an address, where the `@` of a name is percent-encoded, or as a user types it. Positions are
 * digits.
 */
export function splitPlace(place: string): readonly [session: string, seq: number | undefined] {
  const at = place.lastIndexOf('@');
  const digits = place.slice(at + 1);
  return at > 0 && /^\d{1,15}$/.test(digits) ? [place.slice(0, at), Number(digits)] : [place, undefined];
}

/** The route of an address; undefined for an address that the page does not have. */
export function routeOf(address: string): Route | undefined {
  const [path = '', query = ''] = cutAt(address.replace(/^#?\/?/, ''), '?');
  const parts = path.split('/').filter((part) => part !== '');
  try {
    return routeOfParts(parts, new URLSearchParams(query));
  } catch {
    // What is percent-encoded is no text.
    return undefined;
  }
}

function routeOfParts(parts: readonly string[], query: URLSearchParams): Route | undefined {
  const [first, second, third, ...rest] = parts;
  if (rest.length > 0) return undefined;
  if (first === undefined) return { page: 'sessions', ...choiceOf(query) };
  if (first === 'diff') {
    if (second === undefined || third === undefined) return undefined;
    return { page: 'diff', a: decodeURIComponent(second), b: decodeURIComponent(third) };
  }
  if (third !== undefined) return undefined;
  if (first === 'graph' || first === 'usage' || first === 'check')
    return { page: first, ...(second !== undefined && { session: decodeURIComponent(second) }) };
  const [name, seq] = splitPlace(first);
  const session = decodeURIComponent(name);
  if (second === undefined) return { page: 'session', session, ...(seq !== undefined && { seq }) };
  if ((second === 'seen' || second === 'trace') && seq !== undefined) return { page: second, session, seq };
  return undefined;
}

function choiceOf(query: URLSearchParams): ListChoice {
  const [find, kind, state, sort] = ['find', 'kind', 'state', 'sort'].map((key) => query.get(key) ?? '');
  return {
    ...(find && { find }),
    ...(kind && { kind }),
    ...(states.has(state ?? '') && { state: state as ListChoice['state'] }),
    ...(sorts.has(sort ?? '') && { sort: sort as ListChoice['sort'] }),
    ...(query.get('tree') === '1' && { tree: true }),
    ...(query.get('all') === '1' && { all: true }),
  };
}

function pathOf(route: Route): string {
  switch (route.page) {
    case 'sessions': {
      const { page, ...choice } = route;
      const chosen = Object.entries(choice).filter(
        ([, value]) => value !== undefined && value !== false && value !== '',
      );
      const query = new URLSearchParams(
        chosen.map(([key, value]) => [key, value === true ? '1' : String(value)]),
      );
      return chosen.length === 0 ? '' : `?${query}`;
    }
    case 'session':
      return placePath(route.session, route.seq);
    case 'seen':
    case 'trace':
      return `${placePath(route.session, route.seq)}/${route.page}`;
    case 'diff':
      return `diff/${encodeURIComponent(route.a)}/${encodeURIComponent(route.b)}`;
    default:
      return route.session === undefined ? route.page : `${route.page}/${encodeURIComponent(route.session)}`;
  }
}

function placePath(session: string, seq: number | undefined): string {
  const name = encodeURIComponent(session);
  const safe = reserved.has(name) ? `%${name.charCodeAt(0).toString(16)}${name.slice(1)}` : name;
  return seq === undefined ? safe : `${safe}@${seq}`;
}

function cutAt(text: string, mark: string): readonly string[] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
