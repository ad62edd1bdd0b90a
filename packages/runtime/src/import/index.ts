export { readClaudeCode } from './claude-code.ts';
export { ImportError, type ImportErrorCode } from './errors.ts';
export { type JsonLine, type JsonLines, parseJsonLines, readJsonLines } from './json-lines.ts';
export { readTranscript, type TranscriptFormat } from './read-transcript.ts';
export type { Transcript, TranscriptCounts } from './transcript.ts';
