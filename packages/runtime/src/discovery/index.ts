/**
 * Where transcripts of other agents are on this machine. `later-tools.ts` are the tools that are only recognised; `walk.ts`
 * goes through folders, `excludes.ts` says what is left out, `peek.ts` reads the beginning of a file (`line-outline.ts` a long
 * first line), `answers.ts` holds what formats say of it, `discover.ts` searches, `left-out.ts` and `wanted.ts` say which of
 * the files that were found it gives, `nearest.ts` beside which file another one lies, and `expiring.ts` what is about to be
 * deleted. Imports the rooms `sources`, `plan` and `lines`.
 */

export { type Discovery, discover, type Search, type Stranger } from './discover.ts';
export { makeExcludes } from './excludes.ts';
export { type Expiring, standingOf } from './expiring.ts';
export type { FoundFile } from './found-file.ts';
export { looksLike } from './later-tools.ts';
export { nearestOf } from './nearest.ts';
export { peekInto } from './peek.ts';
export { isAtOrBelow, realBeginning } from './real.ts';
export type { Problem } from './walk.ts';
