import type { ServerResponse } from 'node:http';
import type { LivePage } from '../page/page.ts';
import type { Opened } from './shown-home.ts';

/** How often a stream says that it is there, in milliseconds: a page that hears nothing says so, and a client that is gone is found out. */
const beatMs = 5_000;
/** How soon a browser connects again, in milliseconds. */
const retryMs = 500;

/**
 * Sends what changes behind a place of the home, until the client leaves or the home is another one. What was found together
 * is one event, whose id is the place behind it. Reads no further while the client takes nothing: it gets less, and nothing
 * is kept for it; one that stays so is cut off by the time limit of its connection, and goes on from its last event.
 */
export async function sendEvents(
  { page, time, over }: Opened,
  {
    response,
    after,
    masked,
  }: {
    readonly response: ServerResponse;
    readonly after: string;
    readonly masked: (text: string) => string;
  },
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const signal = AbortSignal.any([gone.signal, over]);
  // It says when the next one is to be expected.
  const beat = `event: beat\ndata: ${beatMs}\n\n`;
  response.write(`retry: ${retryMs}\n\n${beat}`);
  const beating = setInterval(() => {
    if (!response.writableNeedDrain) response.write(beat);
  }, beatMs);
  try {
    for await (const events of page.follow(placeIn(after, time), signal)) {
      const at = placeOf(events.at(-1)?.at ?? '', time);
      const data = masked(JSON.stringify(events.map((event) => ({ ...event, at: placeOf(event.at, time) }))));
      if (!response.write(`id: ${at}\ndata: ${data}\n\n`)) await drained(response, signal);
    }
  } finally {
    clearInterval(beating);
    response.end();
  }
}

/** What is said of the home, with the place behind which its events begin. */
export async function homeOf({ page, time }: Opened): ReturnType<LivePage['home']> {
  const home = await page.home();
  return { ...home, at: placeOf(home.at, time) };
}

/** A place of the home, which means nothing once another home is in its place. */
function placeOf(at: string, time: number): string {
  return `${time}/${at}`;
}

/** Empty for a place of another time: a page that follows from there asks for all anew. */
function placeIn(text: string, time: number): string {
  return text.startsWith(`${time}/`) ? text.slice(`${time}/`.length) : '';
}

async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    response.once('drain', resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
