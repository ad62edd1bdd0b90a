import { laterTools } from '../discovery/later-tools.ts';
import { claudeCode } from '../formats/claude-code/tool.ts';
import type { TranscriptTool } from '../plan/format.ts';

/** The tools that are known, those whose transcripts are imported first. */
export const transcriptTools: readonly TranscriptTool[] = [claudeCode, ...laterTools];
