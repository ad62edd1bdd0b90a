export type { BranchOptions } from './branch.ts';
export type { Budget } from './budget.ts';
export { carriedModel } from './carried-model.ts';
export { checkConfig } from './check-config.ts';
export { Child } from './child.ts';
export type { CompactionTrigger } from './compact.ts';
export type { Compaction, CompactOptions } from './compact-session.ts';
export type {
  CompactionPolicy,
  CompactionPreset,
  Keep,
  PrunePolicy,
  SmartRecovery,
  SummaryLimits,
} from './compaction-policy.ts';
export {
  type ApprovalRequest,
  type ConfigLayers,
  type Decision,
  type DeckConfig,
  defaultLimits,
  defineDeck,
  type Limits,
  limitsOf,
  mergeConfig,
} from './config.ts';
export { type Deck, type DeckOptions, openDeck } from './deck.ts';
export type { DeckGraph } from './deck-graph.ts';
export { Delegation } from './delegate.ts';
export type { DelegateOptions, DelegateTask } from './delegate-options.ts';
export type { ChildEvent, ChildOutcome } from './delegate-outcome.ts';
export { type DelegateToolOptions, delegateTool, delegationTools, sendMessageTool } from './delegate-tool.ts';
export { inProcessEngine, type RunEngine, type RunSpec } from './engine.ts';
export { SessionError, type SessionErrorCode } from './errors.ts';
export type { AwaitedAnswer, CallName, SessionEvent, WaitingCall } from './events.ts';
export type { Hooks, LandingMessage, RewindEvent } from './hooks.ts';
export type { Instructions, PromptConfig } from './instructions.ts';
export type { MergeOptions } from './merge.ts';
export type { MergeText } from './merge-text.ts';
export {
  checkModel,
  type ModelSettings,
  type ModelSource,
  type ModelSpec,
  resolveModel,
} from './model-spec.ts';
export type { ModelWindow, Windows } from './model-window.ts';
export { toPrompt } from './prompt.ts';
export type { Omission } from './prompt-file.ts';
export {
  decide,
  defaultMode,
  type QueueDecision,
  type QueueMode,
  type QueuePoint,
  queueModes,
  type Source,
} from './queue.ts';
export type { RecoverOptions, RecoveryReport } from './recover.ts';
export type { RewindMode, RewoundMessage } from './rewind.ts';
export { type Callbacks, type Finish, Run, type RunResult } from './run.ts';
export { parseScript, readScript, type ScriptAnswer, type ScriptContext, scriptModel } from './script.ts';
export { Session } from './session.ts';
export type {
  Input,
  Mark,
  RespondOptions,
  RewindOptions,
  RunOptions,
  SendOptions,
  Sent,
  SessionRewound,
  SubscribeOptions,
} from './session-options.ts';
export type { ModelUsage, SessionUsage, UsageSum } from './session-usage.ts';
export type { ForkOptions, OutputSpec, SpawnedBy } from './spawn.ts';
export type { Phase, RunStatus, Status } from './status.ts';
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
} from './system-prompt.ts';
export type { DeckTool, DeckTools, ToolContext, ToolPaths, ToolTraits } from './tool-traits.ts';
export type { Uncompacted } from './uncompact.ts';
export { type CostOf, noUsage, type Usage } from './usage.ts';
export {
  type Application,
  diffOf,
  openWorktree,
  type Patch,
  planApplication,
  type WorkspaceOptions,
  type WorkspacePlace,
  workspaceOf,
} from './workspace.ts';
