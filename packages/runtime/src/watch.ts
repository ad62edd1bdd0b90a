/** For those who look on: nothing here loads the AI SDK or runs anything. */
export { type Chunk, eventsOf } from './chunks.ts';
export type { SessionEvent } from './events.ts';
export { watchChunks } from './replay.ts';
export { type Fresh, lastRunStart, type TailOptions, tail } from './tail.ts';
