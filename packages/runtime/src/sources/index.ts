/**
 * The files in which sessions of other agents were seen, and how far each was read. A session is what its tool calls it; a
 * file is where it was seen, and may grow, move, be compressed, copied, rewritten or go. `recognise.ts` says which of these
 * happened, `table.ts` keeps what is known in a file of the home, which `kept.ts` reads, unless the tapes are older than that
 * (`written-head.ts`), and `ends.ts` where a large file can be read on. Imports the rooms `import`, `formats`, `plan` and `lines`.
 */
export type { SourceEnd } from './ends.ts';
export { beginningAs, type Held, heldBy, isUnchanged, olderThan, recognise, type Seen } from './recognise.ts';
export type { SessionOfFile, Source } from './source.ts';
export { SourceTable } from './table.ts';
export { newestIn } from './written-head.ts';
