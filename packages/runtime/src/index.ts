/**
 * What programs import from `@tapedeck/runtime`: `openDeck`, the sessions that it gives, and their types. What needs no
 * AI SDK has an entry point of its own in `package.json` (`/status`, `/audit`, `/import` and so on). The package
 * imports `@tapedeck/graph` and `@tapedeck/tape`.
 */
export type {
  CompactionPolicy,
  CompactionPreset,
  Keep,
  PrunePolicy,
  SmartRecovery,
  SummaryLimits,
} from './compaction/policy.ts';
export { parseConfig } from './config/check.ts';
export {
  type ApprovalRequest,
  type ConfigLayers,
  type DeckConfig,
  defaultLimits,
  defineDeck,
  type Limits,
  limitsOf,
  mergeConfig,
} from './config/config.ts';
export type { Hooks, LandingMessage, RewindEvent } from './config/hooks.ts';
export { type Deck, type DeckOptions, openDeck } from './deck/deck.ts';
export type { DeckGraph } from './deck/graph.ts';
export { Delegation } from './delegation/delegation.ts';
export { inProcessEngine, type RunEngine, type RunSpec } from './delegation/engine.ts';
export type { DelegateOptions, DelegateTask } from './delegation/options.ts';
export type { ChildEvent, ChildOutcome } from './delegation/outcome.ts';
export type { RecoverOptions, RecoveryReport } from './delegation/recover.ts';
export type { ForkOptions, OutputSpec, SpawnedBy } from './delegation/spawn.ts';
export { SessionError, type SessionErrorCode } from './errors.ts';
export type { BranchOptions } from './history/branch.ts';
export type { RewindMode, RewoundMessage } from './history/rewind.ts';
export type { Undone, UndoneAct } from './history/undo.ts';
export type { MergeOptions } from './merge/merge.ts';
export type { MergeText } from './merge/text.ts';
export { toPrompt } from './model/prompt.ts';
export {
  parseScript,
  readScript,
  type ScriptAnswer,
  type ScriptContext,
  scriptModel,
} from './model/script.ts';
export {
  assertModel,
  type ModelSettings,
  type ModelSource,
  type ModelSpec,
  resolveModel,
} from './model/spec.ts';
export type { ModelWindow, Windows } from './model/window.ts';
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
export type { Instructions } from './run/instructions.ts';
export type { Input, RunOptions } from './run/options.ts';
export {
  decide,
  defaultMode,
  type QueueDecision,
  type QueueMode,
  type QueuePoint,
  queueModes,
  type Source,
} from './run/queue.ts';
export { type Callbacks, Run, type RunResult } from './run/run.ts';
export { Child } from './session/child.ts';
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
  SubscribeOptions,
} from './session/options.ts';
export { Session } from './session/session.ts';
export type { ToolContext } from './session/tool-context.ts';
export type { Status } from './status/status.ts';
export type { AwaitedAnswer, CallName, Decision, WaitingCall } from './stream/call.ts';
export type { CompactionTrigger, Finish, Phase, RunStatus, SessionEvent } from './stream/events.ts';
export { carriedModel } from './terms/carried-model.ts';
export type { Budget } from './terms/terms.ts';
export type { DeckTool, DeckTools, ToolPaths, ToolTraits } from './tools/traits.ts';
export type { ModelUsage, SessionUsage, UsageSum } from './usage/session-usage.ts';
export { type CostOf, noUsage, type Usage } from './usage/usage.ts';
export {
  type Application,
  diffOf,
  openWorktree,
  type Patch,
  planApplication,
  type WorkspaceOptions,
  type WorkspacePlace,
  workspaceOf,
} from './workspace/index.ts';
