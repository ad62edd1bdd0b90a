import { isDeepStrictEqual } from 'node:util';
import { type DeckParts, partsOf } from '../session/parts.ts';
import { type Chunk, childChunk, eventOf } from '../stream/chunks.ts';
import type { ChildProgress } from '../stream/events.ts';
import { ProgressMeter } from '../stream/progress-meter.ts';
import { progressOf } from '../ui/children.ts';
import type { StartedChild } from '../ui/started.ts';
import type { ChatPlace } from './streams.ts';

/** How often the tape is read of a child that another process runs, in milliseconds. */
export const readMs = 500;

/** A child whose progress is shown. */
interface Watched {
  readonly meter: ProgressMeter;
  /** What its tape said when it was last read. */
  progress: ChildProgress;
  /** The next saved piece of the answer of each of its runs. */
  readonly next: Map<string, number>;
}

/**
 * The progress of children as they work: of those that this process runs from their events, of others from their tapes and
 * the saved pieces of their answers.
 */
export class LiveChildren implements Disposable {
  readonly #place: ChatPlace;
  readonly #parts: DeckParts | undefined;
  readonly #stop = new AbortController();
  readonly #watched = new Map<string, Watched>();
  readonly #news = new Map<string, ChildProgress>();
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(place: ChatPlace) {
    this.#place = place;
    this.#parts = partsOf.get(place.session);
  }

  /** Reads the tapes of children, where one has begun or ended to work, or is run by another process. */
  async look(children: readonly StartedChild[], isNews: boolean): Promise<void> {
    const isDue = performance.now() >= this.#readAt + readMs;
    if (!isNews && !isDue) return;
    this.#readAt = performance.now();
    for (const child of children)
      if (isNews || this.#parts?.worker(child.info).isServing !== true) await this.#read(child);
  }

  /** The progress of each child that has changed since the last call. */
  take(): readonly Chunk[] {
    const chunks = [...this.#news.values()].map(childChunk);
    this.#news.clear();
    return chunks;
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
    for (const { meter } of this.#watched.values()) meter.close();
  }

  async #read(child: StartedChild): Promise<void> {
    const { store } = this.#place;
    const { info } = child;
    const progress = await progressOf(store, child);
    const known = this.#watched.get(info.session) ?? this.#watch(child, progress);
    if (!isDeepStrictEqual(known.progress, progress)) known.meter.settle(progress);
    known.progress = progress;
    if (this.#parts?.worker(info).isServing === true) return;
    for (const { run, chunks } of await store.live.read(info.id, { from: Object.fromEntries(known.next) }))
      for (const { index, chunk } of chunks) {
        known.next.set(run, index + 1);
        const event = eventOf(chunk as unknown as Chunk);
        if (event !== undefined) known.meter.take(event);
      }
  }

  #watch({ info }: StartedChild, progress: ChildProgress): Watched {
    const meter = new ProgressMeter(progress, (next) => this.#news.set(info.session, next));
    const watched: Watched = { meter, progress, next: new Map() };
    this.#watched.set(info.session, watched);
    const events = this.#parts?.worker(info).listen(this.#stop.signal);
    if (events !== undefined)
      void (async () => {
        for await (const event of events) meter.take(event);
      })();
    return watched;
  }
}
