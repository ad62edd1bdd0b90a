/** Entry point for observers: it loads neither the AI SDK nor anything that runs a session. */
export { type Chunk, eventsOf } from './stream/chunks.ts';
export type { SessionEvent } from './stream/events.ts';
export { watchChunks } from './stream/replay.ts';
export { type Fresh, lastRunStart, type TailOptions, tail } from './stream/tail.ts';
