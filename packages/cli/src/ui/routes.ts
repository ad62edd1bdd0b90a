import type { PageData } from '../page/data.ts';
import type { LivePage } from '../page/page.ts';
import { flag, ids, needed, number, oneOf, optional, readQuery, text } from './query.ts';

/** What is asked by a query, from a page. */
type Route = (page: LivePage, query: string) => Promise<unknown>;

const session = needed(text);
const seq = needed(number);

/** A route for each question of the page, under its name. */
const routes: Readonly<Record<Exclude<keyof PageData, 'follow'>, Route>> = {
  home: async (page, query) => {
    readQuery(query, {});
    return await page.home();
  },
  sessions: async (page, query) =>
    await page.sessions(
      readQuery(query, {
        find: optional(text),
        kind: optional(text),
        state: optional(oneOf('open', 'merged', 'failed')),
        sort: optional(oneOf('last', 'created', 'name', 'messages', 'tokens')),
        tree: optional(flag),
        all: optional(flag),
        offset: optional(number),
      }),
    ),
  lineage: async (page, query) =>
    await page.lineage(
      readQuery(query, {
        session: optional(text),
        all: optional(flag),
        opened: optional(ids),
        closed: optional(ids),
        offset: optional(number),
      }),
    ),
  session: async (page, query) => await page.session(readQuery(query, { session })),
  timeline: async (page, query) =>
    await page.timeline(
      readQuery(query, {
        session,
        from: needed(number),
        to: needed(number),
        all: optional(flag),
        hidden: optional(flag),
      }),
    ),
  seen: async (page, query) => await page.seen(readQuery(query, { session, seq })),
  parting: async (page, query) => await page.parting(readQuery(query, { a: needed(text), b: needed(text) })),
  trace: async (page, query) => await page.trace(readQuery(query, { session, seq })),
  usage: async (page, query) =>
    await page.usage(readQuery(query, { session: optional(text), tree: optional(flag) })),
  findings: async (page, query) => await page.findings(readQuery(query, { session: optional(text) })),
};

/** The route of a name; undefined for another name. */
export function routeOf(name: string): Route | undefined {
  return Object.hasOwn(routes, name) ? routes[name as keyof typeof routes] : undefined;
}
