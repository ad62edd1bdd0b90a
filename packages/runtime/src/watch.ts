/** For those who look on: nothing here loads the AI SDK or runs anything. */
export { type Chunk, eventsOf } from './stream/chunks.ts';
export type { SessionEvent } from './stream/events.ts';
export { watchChunks } from './stream/replay.ts';
export { type Fresh, lastRunStart, type TailOptions, tail } from './stream/tail.ts';
