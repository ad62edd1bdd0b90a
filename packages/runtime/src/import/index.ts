/**
 * Transcripts of other agents, read as drafts for a tape. Pure but for reading the file: nothing is written.
 *
 * @privateRemarks
 * `read-transcript.ts` finds the format of a file; `claude-code.ts`, `nexus3.ts` and `session-jsonl.ts` read one format each; the
 * first names the file that has each of its rules, and `saved-session.ts` reads the file of the second; `json-lines.ts` and the files below it read damaged JSON lines of any format. The
 * verb `import` writes. Imports no other room.
 *
 * @module @tapedeck/runtime/import
 */

export type { AgentSource } from './claude-code/agents.ts';
export { type ClaudeCodeSource, planClaudeCode } from './claude-code/plan-of.ts';
export { readClaudeCode } from './claude-code.ts';
export { ImportError, type ImportErrorCode } from './errors.ts';
export { type BadLine, type JsonLine, type JsonLines, parseJsonLines, readJsonLines } from './json-lines.ts';
export { readNexus3 } from './nexus3.ts';
export type { ConversationKind, ConversationPlan, DerivedEdge, ImportPlan, PlacedAside } from './plan.ts';
export { readTranscript, type TranscriptFormat } from './read-transcript.ts';
export { type Reconciled, reconcile } from './reconcile.ts';
export { readSessionJsonl } from './session-jsonl.ts';
export type { Transcript, TranscriptCounts } from './transcript.ts';
