/**
 * Transcripts of other agents: found on a machine, read as plans of whole sessions, and written as tapes.
 *
 * @privateRemarks
 * `tools.ts` lists the formats that are known, `conversations.ts` says which files belong together, `known-first.ts` in which
 * order they are imported, and what is new in them is brought by `import-conversation.ts`, which opens them (`opened.ts`),
 * refuses a wrong plan of a format of a program's own (`plan-fault.ts`), and records what it read (`record-read.ts`), and which
 * deleted sessions took nothing of it (`lacking.ts`), and reads subagents beside another copy where it left them (`left-agents.ts`);
 * `read-file.ts` is one file for the reader of its format. `read-conversation.ts` reads what is not imported. `mark-gone.ts`
 * marks the sessions whose files are gone, and `record-export.ts` keeps what an export wrote from being read.
 * Imports the rooms `discovery` and `sources`, `import`, and what lies below that.
 *
 * @module @tapedeck/runtime/import
 */

export {
  type Discovery,
  discover,
  type FoundFile,
  type Problem,
  type Search,
  type Stranger,
} from '../discovery/index.ts';
export type { AgentSource } from '../formats/claude-code/agents.ts';
export { type ClaudeCodeSource, planClaudeCode } from '../formats/claude-code/plan-of.ts';
export { claudeCode } from '../formats/claude-code/tool.ts';
export type { FoundInFile } from '../formats/found-in-file.ts';
export {
  type ReadOptions,
  type ReadPlan,
  readTranscript,
  type TranscriptFormat,
} from '../formats/read-transcript.ts';
export type { ReconcileOptions } from '../import/reconcile.ts';
export type { Reconciled } from '../import/reconciled.ts';
export { reconcile } from '../import/reconciling.ts';
export { type Cleaner, cleanerFor } from '../imported/cleaner.ts';
export { derivedIn, type RecordedEdge } from '../imported/derived-edges.ts';
export { Origins } from '../imported/origins.ts';
export type { Beside } from '../imported/own-sessions.ts';
export { ImportError, type ImportErrorCode } from '../lines/errors.ts';
export {
  type BadLine,
  type JsonLine,
  type JsonLines,
  type LineOptions,
  parseJsonLines,
  type RecordList,
  readJsonLines,
} from '../lines/json-lines.ts';
export type { Fault, FaultyLine, IrregularLine } from '../plan/faulty-lines.ts';
export type {
  EndPlan,
  Identity,
  KnownEnd,
  Place,
  Retention,
  Role,
  SourceFile,
  SourcePlan,
  TranscriptTool,
} from '../plan/format.ts';
export type { OpenEnd } from '../plan/open-end.ts';
export type {
  ConversationKind,
  ConversationPlan,
  DerivedEdge,
  ImportPlan,
  ParentEdge,
  PlacedAside,
  Visit,
} from '../plan/plan.ts';
export { noCounts, type TranscriptCounts } from '../plan/transcript.ts';
export { type Source, SourceTable } from '../sources/index.ts';
export { type Conversation, conversationsIn } from './conversations.ts';
export type { Brought, FileImport } from './file-import.ts';
export { type ImportingOptions, importConversation } from './import-conversation.ts';
export { knownFirst } from './known-first.ts';
export { asItWas } from './lacking.ts';
export { markSessionsGone } from './mark-gone.ts';
export { recordExport } from './record-export.ts';
export { isRead } from './record-read.ts';
export { transcriptTools } from './tools.ts';
