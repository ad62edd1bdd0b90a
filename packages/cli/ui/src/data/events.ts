import type { Follower, Liveness, PageEvent } from '../../../src/page/data.ts';

/** After how many milliseconds the page requests a stream again that the server refused. */
const againMs = 5_000;

/** After how many heartbeats that do not come the server is silent; and how often they come until it says so, in milliseconds. */
const missedMax = 2;
const usualBeatMs = 5_000;

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
    let silence: ReturnType<typeof setTimeout> | undefined;
    let beatMs = usualBeatMs;
    const listenOn = () => {
      clearTimeout(silence);
      const silentSince = Date.now();
      // A heartbeat may be a little late.
      silence = setTimeout(() => liveness({ silentSince }), (missedMax + 0.2) * beatMs);
    };
    const heard = () => {
      liveness('live');
      listenOn();
    };
    const end = () => {
      clearTimeout(timer);
      clearTimeout(silence);
      stream?.close();
      stream = undefined;
    };
    const begin = () => {
      end();
      if (document.hidden) return;
      const own = new EventSource(`${base}events?after=${encodeURIComponent(at)}`);
      stream = own;
      listenOn();
      own.addEventListener('beat', ({ data }) => {
        beatMs = Number(data);
        heard();
      });
      // What was found together comes together: a connection that is cut loses none of it, and repeats none.
      own.addEventListener('message', ({ data, lastEventId }) => {
        heard();
        at = lastEventId;
        (JSON.parse(String(data)) as readonly PageEvent[]).forEach(event);
      });
      own.addEventListener('open', heard);
      own.addEventListener('error', async () => {
        clearTimeout(silence);
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
