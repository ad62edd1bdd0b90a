import type { PageData, Timeline } from '../../../src/page/data.ts';

/** What the page asks, of a server or of the file that it is in. */
export interface Asks extends PageData {
  /** The same as `timeline`, at once: a page that is printed waits for no promise. */
  timelineNow(query: Parameters<PageData['timeline']>[0]): Timeline;
}
