export { Child, type ForkOptions } from './child.ts';
export { type Deck, type DeckConfig, type DeckOptions, openDeck } from './deck.ts';
export type { DeckGraph } from './deck-graph.ts';
export {
  type ChildEvent,
  type ChildOutcome,
  type DelegateOptions,
  type DelegateTask,
  Delegation,
} from './delegate.ts';
export { inProcessEngine, type RunEngine, type RunSpec } from './engine.ts';
export { SessionError, type SessionErrorCode } from './errors.ts';
export type { SessionEvent } from './events.ts';
export type { MergeOptions } from './merge.ts';
export {
  checkModel,
  type ModelSettings,
  type ModelSource,
  type ModelSpec,
  resolveModel,
} from './model-spec.ts';
export { toPrompt } from './prompt.ts';
export type { RecoverOptions, RecoveryReport } from './recover.ts';
export { type Finish, Run, type RunResult } from './run.ts';
export { parseScript, readScript, type ScriptAnswer, type ScriptContext, scriptModel } from './script.ts';
export { type Input, type Mark, type RunOptions, Session } from './session.ts';
export { noUsage, type Usage } from './usage.ts';
