/**
 * What the page of `tape ui` shows, as JSON: each method of `PageData`, whose types are in `data.ts`, is a function of a
 * store that is read and of what is asked, in the file of its name. They read by the same functions as the verbs, and of a
 * home of any size only what they answer. `source.ts` has what they are given. `item.ts` and `parts.ts` make the items of a
 * timeline of those of a transcript, `marks.ts` and `lineage-rows.ts` the rows of the lineage, and `days.ts` the sums of
 * the plot. `damaged-reads.ts` reads past what is damaged, and `readable.ts` keeps what misleads a reader out of all texts. `whole.ts` writes all that an exported file answers, which `embedded.ts` has the types of. Imports `session`, `transcript`, `output`, `lineage`, `errors` and `escape`.
 */
import { damagedReads } from './damaged-reads.ts';
import type { PageData, PageEvent } from './data.ts';
import { findings } from './findings.ts';
import { follow } from './follow.ts';
import { home } from './home.ts';
import { lineage } from './lineage.ts';
import { parting } from './parting.ts';
import { seen } from './seen.ts';
import { session } from './session.ts';
import { sessions } from './sessions.ts';
import type { LiveSource } from './source.ts';
import { timeline } from './timeline.ts';
import { trace } from './trace.ts';
import { usage } from './usage.ts';

export { findingsMax } from './findings.ts';
export { fitting } from './fits.ts';
export { readable } from './readable.ts';
export type { Scope } from './scope.ts';
export type { Checked, LiveSource } from './source.ts';
export { wholeJson } from './whole.ts';

/** What answers a page, and tells it what changes behind a place of the home, until the signal: a few events at a time. */
export interface LivePage extends Omit<PageData, 'follow'> {
  follow(after: string, signal: AbortSignal): AsyncGenerator<readonly PageEvent[]>;
}

/** Answers what a page asks, from a store that is open while it does. */
export function pageOf(given: LiveSource): LivePage {
  const source = { ...given, store: damagedReads(given.store) };
  return {
    home: async () => home(source),
    sessions: async (query) => await sessions(source, query),
    lineage: async (query) => await lineage(source, query),
    session: async (query) => await session(source, query),
    timeline: async (query) => await timeline(source, query),
    seen: async (query) => seen(source, query),
    parting: async (query) => await parting(source, query),
    trace: async (query) => await trace(source, query),
    usage: async (query) => await usage(source, query),
    findings: async (query) => await findings(source, query),
    follow: (after, signal) => follow(source, { after, signal }),
  };
}
