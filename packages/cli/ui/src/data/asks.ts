import type { PageData, Timeline } from '../../../src/page/data.ts';
import type { Route } from '../route.ts';

/** What the page asks, of a server or of the file that it is in. */
export interface Asks extends PageData {
  /** Whether what an address shows may be there. A file does not have all of it, and then nothing should lead to it. */
  has(route: Route): boolean;
  /** The same as `timeline`, at once: a page that is printed waits for no promise. */
  timelineNow(query: Parameters<PageData['timeline']>[0]): Timeline;
}
