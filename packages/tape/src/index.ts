export { type Appended, fenced } from './append.ts';
export {
  type Artifact,
  artifactOf,
  isObjectName,
  type PatchFile,
  patchPaths,
  type RecordedArtifact,
  workspaceClosed,
} from './artifact.ts';
export {
  type BlobRef,
  blobBytesMax,
  blobHashes,
  isBlobRef,
  isTextRef,
  restoreBlobs,
  type TextRef,
} from './blob.ts';
export type { Sources } from './clock.ts';
export { assistantText, type Collected } from './collect.ts';
export type { Conflict, ConflictReport } from './conflicts.ts';
export type { Target } from './dialect.ts';
export type { Finding } from './doctor.ts';
export { checkDraft } from './encode.ts';
export {
  type Awaitable,
  anchor,
  assistant,
  compaction,
  type Draft,
  type Entry,
  type EntryKind,
  handoff,
  type Mark,
  type Meta,
  normalise,
  note,
  type Part,
  type Seq,
  toolCall,
  toolResult,
  user,
} from './entry.ts';
export { TapeError, type TapeErrorCode } from './errors.ts';
export { goOn, noAnswer, noResult, noStart } from './fit.ts';
export type { Forked } from './fork.ts';
export type { Deliver, DoneWork, ForkRequest, Span, WorktreeRequest } from './fork-request.ts';
export { bodyHash, type ChainLink, entryHash, genesisHash, sha256 } from './hash.ts';
export type { InboxBody, InboxDraft, InboxItem, RunItem, Taken } from './inbox.ts';
export {
  encodeJson,
  entryBytesMax,
  isObject,
  type Json,
  type JsonObject,
  jsonDepth,
  jsonDepthMax,
  parseJson,
} from './json.ts';
export { type Lease, leaseTtlMs, type SessionOwner } from './lease.ts';
export {
  encodeLine,
  firstPrev,
  type Journal,
  type LineageLine,
  type LineageType,
  type LineIntention,
  lineHash,
} from './lineage-line.ts';
export { type Manifest, type Remake, remakeOf } from './manifest.ts';
export type { Merged } from './merge.ts';
export { mergeCharsMax } from './merge-block.ts';
export type { MergeDraft, MergeRequest, MergeStrategy } from './merge-plan.ts';
export {
  checkAnchorName,
  checkName,
  childName,
  derivedNameMax,
  isUlid,
  nameFault,
  nameMax,
  nearNames,
  quote,
  tapeName,
} from './name.ts';
export { clientCalls } from './open-calls.ts';
export type { OpenOptions } from './open-database.ts';
export type { Intention } from './outbox.ts';
export { type Owner, processOwner, provablyDead } from './owner.ts';
export { isHomeFile } from './place.ts';
export type { Point } from './point.ts';
export {
  parsePolicy,
  policyText,
  rulesOf,
  type ViewBase,
  type ViewNarrowing,
  type ViewPolicy,
  type ViewRule,
  type ViewRules,
  type ViewTopic,
  type ViewWindow,
} from './policy.ts';
export type { ForkPreview, MergePreview, PreviewEntry } from './preview.ts';
export { isPrune, type PrunedOutput, prune, prunedOutputs } from './pruned.ts';
export type { LineageQuery } from './read-lineage.ts';
export type { Redacted } from './redact.ts';
export { renderState, type StoredMessage } from './render.ts';
export type { Rewound } from './rewind.ts';
export type { Hit, SearchQuery } from './search.ts';
export { type Selection, select, viewVersion } from './select.ts';
export type { SessionInit } from './session.ts';
export { openTapeStore, SqliteTapeStore, type StoreOptions } from './sqlite-store.ts';
export type { StageInit } from './stage.ts';
export type {
  AppendOptions,
  DrainOptions,
  EntryQuery,
  Posted,
  TapeStore,
  WriteOptions,
} from './store.ts';
export type { LiveStream, StreamChunk } from './stream.ts';
export {
  type Delivery,
  isSummarizer,
  type Lifecycle,
  type Ref,
  type SessionInfo,
  type SessionQuery,
  summarizerKind,
  type Task,
} from './tapes.ts';
export { type CountTokens, entryTokens, estimateTokens, textTokens, usedSinceStep } from './tokens.ts';
export { type Touch, touchesOf } from './touch.ts';
export { recordedUsage, totalOf, type Usage } from './usage.ts';
export type { Problem } from './verify.ts';
export { type View, type ViewOptions, view } from './view.ts';
export { streamView, type ViewEnd } from './view-stream.ts';
export { workerInstructions } from './worker-prompt.ts';
