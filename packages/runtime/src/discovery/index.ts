/**
 * Where transcripts of other agents are on this machine. `tool.ts` says what a tool has to know, `claude-code.ts` and
 * `later-tools.ts` are the tools; `walk.ts` goes through folders, `excludes.ts` says what is left out, `peek.ts` reads the
 * beginning of a file, `discover.ts` searches, and `expiring.ts` says what is about to be deleted. Imports the rooms `sources`, `lines` and `import`.
 */
import { claudeCode } from './claude-code.ts';
import { laterTools } from './later-tools.ts';
import type { TranscriptTool } from './tool.ts';

export { type Discovery, discover, type FoundFile, type Search, type Stranger } from './discover.ts';
export { makeExcludes } from './excludes.ts';
export { type Expiring, standingOf } from './expiring.ts';
export type { Place, Retention, TranscriptTool } from './tool.ts';
export type { Problem } from './walk.ts';

/** The tools that are known, those whose transcripts are imported first. */
export const transcriptTools: readonly TranscriptTool[] = [claudeCode, ...laterTools];
