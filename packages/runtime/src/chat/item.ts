import { setTimeout as sleep } from 'node:timers/promises';
import type { InboxItem } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';
import type { Run } from '../run/run.ts';
import type { StartOptions } from '../session/options.ts';
import type { Session } from '../session/session.ts';
import { chatIdOf } from '../stream/chat-id.ts';
import type { Chunk } from '../stream/chunks.ts';
import { otherStream } from './elsewhere.ts';
import { type ChatPlace, isWritten, lookMs, runStream } from './streams.ts';

/**
 * The stream of the run that takes up an item of the inbox, once it begins. When no process runs the session, it starts the
 * next run. `written` gives what a run that is over has made of the item.
 */
export async function* itemStream(
  place: ChatPlace,
  item: string,
  { options, written }: { readonly options: StartOptions; readonly written: () => AsyncIterable<Chunk> },
): AsyncGenerator<Chunk> {
  const { store, session } = place;
  let seen: Run | undefined;
  for (;;) {
    const run: Run | undefined = session.attach() ?? seen?.following;
    if (run?.took.includes(item) === true) {
      yield* runStream(place, run);
      return;
    }
    const isQueued = (await store.inbox.list(session.id)).some(({ id }) => id === item);
    if (!isQueued && session.attach() === undefined) {
      yield* (await isWritten(place)) ? otherStream(place) : written();
      return;
    }
    // A run that begins has not taken up its items yet.
    if (run !== undefined) {
      seen = run;
      await Promise.race([run.then(ignored, ignored), sleep(lookMs)]);
      continue;
    }
    if (!(await isWritten(place))) {
      const fault = await startNext(session, item, options);
      if (fault !== undefined) throw fault;
    }
    await sleep(lookMs);
  }
}

/** The item of a message that waits in the inbox, by the id that the chat gave the message. */
export async function queuedItem({ store, session }: ChatPlace, id: string): Promise<InboxItem | undefined> {
  return (await store.inbox.list(session.id)).find(
    ({ body }) => body.type === 'input' && body.drafts.some(({ meta }) => chatIdOf(meta) === id),
  );
}

/** Starts the run of what waits longest. Returns why it could not, unless the session is run elsewhere. */
async function startNext(session: Session, item: string, options: StartOptions): Promise<unknown> {
  if (session.attach() !== undefined) return undefined;
  const run = session.run(undefined, options);
  const fault = await Promise.race([run.then(ignored, (error: unknown) => error), sleep(lookMs)]);
  const isHarmless =
    fault === undefined ||
    run.took.includes(item) ||
    (fault instanceof SessionError && fault.code === 'SESSION_BUSY');
  return isHarmless ? undefined : fault;
}

function ignored(): undefined {
  return undefined;
}
