import { laterTools } from '../discovery/later-tools.ts';
import { claudeCode } from '../import/claude-code/tool.ts';
import type { TranscriptTool } from '../import/format.ts';

/** The tools that are known, those whose transcripts are imported first. */
export const transcriptTools: readonly TranscriptTool[] = [claudeCode, ...laterTools];
