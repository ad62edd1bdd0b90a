import { laterTools } from '../discovery/later-tools.ts';
import { claudeCode } from '../formats/claude-code/tool.ts';
import type { TranscriptTool } from '../plan/format.ts';

/** The tools that are known, those whose transcripts are imported first. */
export const transcriptTools: readonly TranscriptTool[] = [claudeCode, ...laterTools];

/** Whether a format is one of these: tests check what they plan. */
export function isOwn(tool: Pick<TranscriptTool, 'name'>): boolean {
  return transcriptTools.some((one) => one === tool);
}
