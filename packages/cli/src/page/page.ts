/**
 * What the page of `tape ui` shows, as JSON: each method of `PageData`, whose types are in `data.ts`, is a function of a
 * store that is read and of what is asked. They read by the same functions as the verbs, and of a home of any size only what
 * they answer. `source.ts` has what they are given, `sessions.ts` and `session.ts` the lists and one session, and
 * `timeline.ts` its entries, which `item.ts` and `parts.ts` make of the items of a transcript. Imports `session`,
 * `transcript`, `output`, `errors` and `escape`.
 */
import type { PageData } from './data.ts';
import { session } from './session.ts';
import { sessions } from './sessions.ts';
import type { PageSource } from './source.ts';
import { timeline } from './timeline.ts';

export type { PageSource } from './source.ts';

/** Answers what a page asks. */
export function pageOf(source: PageSource): Pick<PageData, 'sessions' | 'session' | 'timeline'> {
  return {
    sessions: async (query) => await sessions(source, query),
    session: async (query) => await session(source, query),
    timeline: async (query) => await timeline(source, query),
  };
}
