import type { Follower, Liveness, PageEvent } from '../../../src/page/data.ts';

/** After how many milliseconds the page requests a stream again that the server refused. */
const againMs = 5_000;

/**
 * Follows the events of a server while someone can see the page. A browser has six connections to a server for all of its
 * pages: those behind others would take them all, and the next one would not be loaded. A page that is seen again goes on
 * behind its last event.
 */
export const followEvents =
  (base: string) =>
  (after: string, { event, liveness }: Follower, signal: AbortSignal): void => {
    let at = after;
    let stream: EventSource | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = () => {
      clearTimeout(timer);
      stream?.close();
      stream = undefined;
    };
    const begin = () => {
      end();
      if (document.hidden) return;
      const own = new EventSource(`${base}events?after=${encodeURIComponent(at)}`);
      stream = own;
      // What was found together comes together: a connection that is cut loses none of it, and repeats none.
      own.addEventListener('message', ({ data, lastEventId }) => {
        at = lastEventId;
        (JSON.parse(String(data)) as readonly PageEvent[]).forEach(event);
      });
      own.addEventListener('open', () => liveness('live'));
      own.addEventListener('error', async () => {
        liveness('lost');
        // Else it connects again by itself.
        if (own.readyState !== EventSource.CLOSED) return;
        const state = await livenessOf(base);
        if (stream !== own) return;
        liveness(state);
        if (state === 'lost') timer = setTimeout(begin, againMs);
      });
    };
    document.addEventListener('visibilitychange', begin, { signal });
    signal.addEventListener('abort', end);
    begin();
  };

/** Whether a server that refused a stream may give one later: too many follow, or the home is not there. */
async function livenessOf(base: string): Promise<Liveness> {
  const { status } = await fetch(`${base}home`, { cache: 'no-store' }).catch(() => ({ status: 0 }));
  return status === 401 || status === 403 ? 'ended' : 'lost';
}
