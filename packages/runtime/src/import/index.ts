/**
 * Transcripts of other agents, read as drafts for a tape, or as plans of whole sessions that `reconcile` writes.
 *
 * @privateRemarks
 * Two ways: `read-transcript.ts` reads one file as one session, and writes nothing; `claude-code.ts`, `nexus3.ts` and
 * `session-jsonl.ts` read one format each; the first names the file that has each of its rules, and `saved-session.ts` reads
 * the file of the second. A folder per format, of which there is one, `claude-code/`, reads all files of a session as a tree
 * of conversations (`plan.ts`), with the same rules; `reconcile.ts` writes such a plan, by what `imported.ts` finds on a tape
 * and `change.ts` concludes from it. `json-lines.ts` and the files below it read damaged JSON lines of any format. Imports
 * no other room.
 *
 * @module @tapedeck/runtime/import
 */

export type { AgentSource } from './claude-code/agents.ts';
export {
  type AgentFile,
  type ClaudeCodeFiles,
  claudeCodeFiles,
  readClaudeCodeFiles,
} from './claude-code/files.ts';
export { type ClaudeCodeSource, planClaudeCode } from './claude-code/plan-of.ts';
export { readClaudeCode } from './claude-code/read-file.ts';
export { ImportError, type ImportErrorCode } from './errors.ts';
export {
  type BadLine,
  type JsonLine,
  type JsonLines,
  type LineOptions,
  parseJsonLines,
  readJsonLines,
} from './json-lines.ts';
export { readNexus3 } from './nexus3.ts';
export type {
  ConversationKind,
  ConversationPlan,
  DerivedEdge,
  ImportPlan,
  ParentEdge,
  PlacedAside,
} from './plan.ts';
export { readTranscript, type TranscriptFormat } from './read-transcript.ts';
export { type Cleaner, type Reconciled, type ReconcileOptions, reconcile } from './reconcile.ts';
export { readSessionJsonl } from './session-jsonl.ts';
export type { Transcript, TranscriptCounts } from './transcript.ts';
