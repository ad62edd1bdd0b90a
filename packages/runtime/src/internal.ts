/**
 * Entry point of the command line and of the project's tests. Nothing here is promised to programs: names come and go
 * without notice.
 */
export { type Brought, broughtBy } from './audit/brought.ts';
export {
  asidesIn,
  checkSome,
  checkUnreadable,
  checkWithoutDatabase,
  examineFiles,
  type FileFinding,
  type Found,
  kinds as checkKinds,
  verifyGraph,
  verifyTapes,
} from './check/index.ts';
export {
  type CutPoint,
  cutPoint,
  fileSets,
  fileTags,
  isToBePruned,
  isTooFull,
  missingSections,
  outputsToPrune,
  planCompaction,
  resolvePolicy,
  summaryPrompt,
  summarySections,
  transcriptOf,
  usableOf,
  validCuts,
  withoutFileTags,
  withoutMiddle,
} from './compaction/index.ts';
export { type ConfigLayers, limitsOf, mergeConfig } from './config/config.ts';
export {
  type Expiring,
  isAtOrBelow,
  looksLike,
  makeExcludes,
  peekInto,
  realBeginning,
  standingOf,
} from './discovery/index.ts';
export { cleaner } from './export/clean-store.ts';
export {
  resumeCommand,
  type Transcript,
  type TranscriptForm,
  transcriptFor,
  transcriptPath,
} from './export/transcript.ts';
export { isAfter, newestAct, undoable } from './history/undo.ts';
export { foreseen } from './import/foreseen.ts';
export { leftTape, reconcileEnd } from './import/reconcile-end.ts';
export { withoutContent } from './imported/erased.ts';
export { forgottenDraft, originDraft } from './imported/forgotten.ts';
export { hasOwnId, keyOf, saysLine } from './imported/keys.ts';
export { sessionsBySource, sourceOf } from './imported/origins.ts';
export { QuotedTexts, saidIn } from './imported/quoted-texts.ts';
export { shortHash } from './imported/short-hash.ts';
export {
  beginning,
  cannotRead,
  compressionIn,
  contentOf,
  isGone,
  KeptLines,
  type LineBatch,
  type LineFault,
  LineReading,
  openFile,
  packedBytes,
  type ReadState,
  reasonOf,
  Spool,
  stateOf,
} from './lines/index.ts';
export { serverNote } from './mcp/drift.ts';
export { secretsOfServers } from './mcp/secrets.ts';
export { Servers as McpServersOfDeck } from './mcp/servers.ts';
export { giveUp } from './merge/give-up.ts';
export { isSettled, settleChild } from './merge/merge.ts';
export { writeTextAlone } from './merge/text.ts';
export { assertSpec } from './model/name.ts';
export { assertModel } from './model/spec.ts';
export { type Claim, type ClaimingCall, claimsOf, claimText } from './permissions/claim.ts';
export { commandText, wordsOf } from './permissions/command.ts';
export {
  decide as decideCall,
  type Party,
  type Ruling,
  type Scope,
  type ScopedRule,
} from './permissions/decide.ts';
export { offersFor } from './permissions/offers.ts';
export { covers, type Place } from './permissions/pattern.ts';
export { realPath, rememberedPaths } from './permissions/real-path.ts';
export { levels, parseRule, parseRules, type Rule, RuleFault } from './permissions/rule.ts';
export { wholeDraft } from './plan/later-draft.ts';
export {
  decide,
  defaultMode,
  type QueueDecision,
  type QueuePoint,
  queueModes,
  sourceFault,
} from './run/queue.ts';
export { beginningAs, isUnchanged, recognise, type Seen, type Source, SourceTable } from './sources/index.ts';
export { waitsOf } from './status/status.ts';
export { leftAfterAnswer, runningChildren } from './status/waits.ts';
export { ProgressMeter } from './stream/progress-meter.ts';
export { lastRunStart } from './stream/tail.ts';
export { carriedModel } from './terms/carried-model.ts';
export { openPermits, ruleTexts } from './terms/permits.ts';
export {
  allowedTools,
  ancestryOf,
  assertCeiling,
  factsOf,
  originOf,
  type ToolLists,
  usedTools,
} from './terms/terms.ts';
export { interruptedAmong, isInterrupted } from './tools/interrupted.ts';
export { traceMerges } from './trace/index.ts';
export { trafficFiles } from './traffic/file.ts';
export { readConversation } from './transcripts/read-conversation.ts';
export { addSums, noSum, sumOf } from './usage/session-usage.ts';
export { noUsage } from './usage/usage.ts';
export {
  type Application,
  closeWorktree,
  diffOf,
  type KeptWorktree,
  openWorktree,
  planApplication,
  releaseWorktree,
  withWorktree,
  workspaceOf,
} from './workspace/index.ts';
