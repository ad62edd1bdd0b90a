/**
 * What programs import from `@tapedeck/runtime`: `openDeck`, the sessions that it gives, acts and reports on
 * a store, and their types. It loads the AI SDK with the first model call, and zod with the first
 * configuration.
 *
 * In the examples the model answers from a file, `answers.json`, offline; `parseScript` of
 * `@tapedeck/runtime/testing` reads such files. In the place of `script:answers.json` goes the name of a
 * model, or any model of the AI SDK.
 *
 * @privateRemarks
 * Tests import `testing.ts`, readers of transcripts `import`. The package imports `@tapedeck/graph` and
 * `@tapedeck/tape`.
 *
 * @module @tapedeck/runtime
 */
export {
  type Audit,
  type AuditCode,
  type AuditFinding,
  type AuditOptions,
  audit,
  type NextStep,
} from './audit/index.ts';
export { type Blame, type BlamedPart, type BlameOptions, blame } from './blame/index.ts';
export { type BuiltinName, type BuiltinOptions, builtins } from './builtins/builtins.ts';
export { BuiltinError, type BuiltinErrorCode } from './builtins/errors.ts';
export type { BuiltinLimits } from './builtins/limits.ts';
export type { Authorize, ChatAccess, ChatRight } from './chat/access.ts';
export { type ChatHandler, type ChatOptions, type ChatRequest, chatHandler } from './chat/chat.ts';
export { ChatError, type ChatErrorCode, type OnChatError } from './chat/errors.ts';
export { nodeListener } from './chat/node.ts';
export {
  type Attestation,
  type AttestationSource,
  type AttestOptions,
  attest,
  type Check,
  type CheckCode,
  type CheckedSection,
  type CheckFinding,
  type CheckOptions,
  type CheckProgress,
  type CheckSection,
  type CheckStep,
  type CheckWeight,
  check,
} from './check/index.ts';
export type {
  CompactionPolicy,
  CompactionPreset,
  Keep,
  PrunePolicy,
  SmartRecovery,
  SummaryLimits,
} from './compaction/policy.ts';
export {
  type ApprovalRequest,
  type DeckConfig,
  defaultLimits,
  defineDeck,
  type Limits,
} from './config/config.ts';
export type { Hooks, IncomingMessage, RewindEvent } from './config/hooks.ts';
export { parseConfig } from './config/parse.ts';
export type { Deck, DeckOptions, NewSession } from './deck/deck.ts';
export type { DeckGraph } from './deck/graph.ts';
export type {
  DeckIdentities,
  PersonaOptions,
  ResolvedSession,
  ResolveKeyOptions,
  Routed,
  RoutePreview,
} from './deck/identities.ts';
export { openDeck } from './deck/open.ts';
export type { DeletedSession, SavedSession, SavedSessions } from './deck/saved.ts';
export type { StrayError } from './deck/stray-errors.ts';
export type { Delegation } from './delegation/delegation.ts';
export { inProcessEngine, type RunEngine, type RunSpec } from './delegation/engine.ts';
export type { DelegateOptions, DelegateTask } from './delegation/options.ts';
export type { ChildEvent, ChildOutcome, OutcomesOf } from './delegation/outcome.ts';
export type { ForkOptions, SpawnedBy } from './delegation/spawn.ts';
export {
  type CommonBase,
  type DiffLimits,
  type DiffMessage,
  type DiffPlace,
  type DiffSide,
  diffSessions,
  type SessionDiff,
} from './diff/index.ts';
export { SessionError, type SessionErrorCode } from './errors.ts';
export {
  type Exported,
  type ExportedTranscript,
  type ExportFormat,
  type ExportOptions,
  exportFormats,
  exportSession,
  type SessionMetadata,
} from './export/index.ts';
export { type BranchOptions, branchSession } from './history/branch.ts';
export { type RewindMode, type RewoundMessage, rewindSession } from './history/rewind.ts';
export { undeleteSession } from './history/undelete.ts';
export { type Undone, type UndoneAct, undoSession } from './history/undo.ts';
export type { IncomingDelivery, PeerKind, Principal } from './identity/delivery.ts';
export { parseSessionKey, type SessionKey, sessionKey } from './identity/key.ts';
export type { Persona, Personas } from './identity/persona.ts';
export type { Route, RouteMatch } from './identity/route.ts';
export { type LogFile, type LogName, type LogOptions, type LogPiece, renderLogs } from './logs/index.ts';
export type { McpAddress, McpProgram, McpServer, McpServers } from './mcp/spec.ts';
export type { MergeOptions } from './merge/merge.ts';
export type { MergeText } from './merge/text.ts';
export { type CallSettings, type Effort, efforts } from './model/call-settings.ts';
export type { ModelFrom } from './model/name.ts';
export type { OutputSpec } from './model/output.ts';
export { toPrompt } from './model/prompt.ts';
export { type ModelSettings, type ModelSource, type ModelSpec, resolveModel } from './model/spec.ts';
export type { ModelWindow, Windows } from './model/window.ts';
export type { RuleTexts } from './permissions/rule.ts';
export type { PromptConfig } from './prompt/config.ts';
export type { Omission } from './prompt/file.ts';
export {
  type Environment,
  type ProjectFile,
  type PromptParts,
  type PromptSource,
  type Sections,
  type SkillName,
  type SystemPrompt,
  systemPrompt,
  type ToolEntry,
} from './prompt/system-prompt.ts';
export type { Divergence } from './recorded/divergence.ts';
export { type RecordedOptions, recorded } from './recorded/recorded.ts';
export { recordedTools } from './recorded/tools.ts';
export type { RecoverOptions, RecoveryReport } from './recovery/recover.ts';
export type { CallEnd, RecoveredSession, RecoveryAct } from './recovery/report.ts';
export type { Instructions } from './run/instructions.ts';
export type { Input, RunOptions } from './run/options.ts';
export type { MessageSource, QueueMode } from './run/queue.ts';
export type { Callbacks, Run, RunResult } from './run/run.ts';
export type { Child } from './session/child.ts';
export type { Compaction, CompactOptions } from './session/compact.ts';
export {
  type DelegateToolOptions,
  delegateTool,
  delegationTools,
  sendMessageTool,
} from './session/delegate-tool.ts';
export type {
  AnchorReceipt,
  RespondOptions,
  RewindOptions,
  SendOptions,
  Sent,
  SessionRewound,
  SessionRules,
  StartOptions,
  SubscribeOptions,
} from './session/options.ts';
export type { Session } from './session/session.ts';
export { tapeTools } from './session/tape-tools.ts';
export type { ToolContext } from './session/tool-context.ts';
export { type Status, statusesOf, statusOf, untilIdle } from './status/status.ts';
export type { StoreSource } from './store-of.ts';
export type { AwaitedAnswer, CallName, Decision, WaitingCall } from './stream/call.ts';
export { type Chunk, eventsOf } from './stream/chunks.ts';
export type {
  ChildProgress,
  CompactionTrigger,
  Finish,
  Phase,
  RunStatus,
  SessionEvent,
} from './stream/events.ts';
export { watchChunks } from './stream/replay.ts';
export { type Fresh, type TailOptions, tail } from './stream/tail.ts';
export type { Permit } from './terms/permits.ts';
export type { Budget } from './terms/terms.ts';
export type { FilePlace, Reach } from './tools/file-place.ts';
export type { DeckTool, DeckTools, ToolPaths, ToolTraits } from './tools/traits.ts';
export { type Trace, type TraceDestination, type TraceSource, trace } from './trace/index.ts';
export {
  type ModelUsage,
  readUsage,
  type SessionUsage,
  type TreeUsage,
  type UsageSum,
} from './usage/session-usage.ts';
export type { CostOf, Usage } from './usage/usage.ts';
export type { WorkspaceOptions } from './workspace/index.ts';
