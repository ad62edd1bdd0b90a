/**
 * What programs import from `@tapedeck/tape`: the store, the constructors of drafts, views, and the pure rules that the
 * other packages share. The package has one entry point more for each of `conformance`, `errors` and `crash-point`. It
 * imports no other package.
 */
export type { Finding } from './check/doctor.ts';
export type { Problem } from './check/verify.ts';
export type { Sources } from './clock.ts';
export {
  type Artifact,
  artifactOf,
  isObjectName,
  type PatchFile,
  patchPaths,
  type RecordedArtifact,
  workspaceClosed,
} from './entry/artifact.ts';
export {
  type BlobRef,
  blobBytesMax,
  blobHashes,
  isBlobRef,
  isTextRef,
  restoreBlobs,
  type TextRef,
} from './entry/blob.ts';
export { assertDraft } from './entry/encode.ts';
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
} from './entry/entry.ts';
export { bodyHash, type ChainLink, entryHash, genesisHash, sha256 } from './entry/hash.ts';
export {
  encodeJson,
  entryBytesMax,
  isObject,
  type Json,
  type JsonObject,
  jsonDepth,
  jsonDepthMax,
  parseJson,
} from './entry/json.ts';
export {
  childName,
  derivedNameMax,
  isUlid,
  nameFault,
  nameMax,
  nearNames,
  parseAnchorName,
  parseName,
  quote,
  tapeName,
} from './entry/name.ts';
export { type Touch, touchesOf } from './entry/touch.ts';
export { recordedUsage, totalOf, type Usage } from './entry/usage.ts';
export { TapeError, type TapeErrorCode } from './errors.ts';
export type { Forked } from './fork/fork.ts';
export type { Deliver, DoneWork, ForkRequest, Span, WorktreeRequest } from './fork/request.ts';
export { workerInstructions } from './fork/worker-instructions.ts';
export type { Redacted } from './history/redact.ts';
export type { Rewound } from './history/rewind.ts';
export type { InboxBody, InboxDraft, InboxItem, Taken } from './inbox/inbox.ts';
export {
  encodeLine,
  firstPrev,
  type Journal,
  type LineageLine,
  type LineageType,
  type LineIntention,
  lineHash,
} from './lineage/line.ts';
export type { Intention } from './lineage/outbox.ts';
export type { LineageQuery } from './lineage/read.ts';
export { mergeCharsMax } from './merge/block.ts';
export { assistantText, type Collected, resultRefused } from './merge/collect.ts';
export type { Conflict, ConflictReport } from './merge/conflicts.ts';
export type { MergeDraft, MergeRequest, MergeStrategy } from './merge/plan.ts';
export type { Merged } from './merge/receipt.ts';
export { type Owner, processOwner, provablyDead } from './owner.ts';
export type { Hit, SearchQuery } from './search/search.ts';
export type { SessionInit } from './session/session.ts';
export type { StageInit } from './session/stage.ts';
export { isHomeFile } from './sqlite/place.ts';
export type { OpenOptions } from './store/open.ts';
export type { ForkPreview, MergePreview, PreviewEntry } from './store/preview.ts';
export { openTapeStore, SqliteTapeStore, type StoreOptions } from './store/sqlite.ts';
export type {
  AppendOptions,
  DrainOptions,
  EntryQuery,
  Posted,
  TapeStore,
  WriteOptions,
} from './store/store.ts';
export type { Appended } from './tape/append.ts';
export type { LiveStream, StreamChunk } from './tape/chunks.ts';
export { isSummarizer, type SessionInfo, type SessionQuery, summarizerKind } from './tape/info.ts';
export { fenced, type Lease, leaseTtlMs, type SessionOwner } from './tape/lease.ts';
export { clientCalls } from './tape/open-calls.ts';
export type { Point } from './tape/point.ts';
export type { RunItem } from './tape/post.ts';
export { assertActive, type Delivery, type Lifecycle, type Ref, type Task } from './tape/tape.ts';
export type { Target } from './view/dialect.ts';
export { goOn, noAnswer, noResult, noStart } from './view/fit.ts';
export { isClientCall } from './view/fit-call.ts';
export { type Manifest, type Remake, remakeOf } from './view/manifest.ts';
export {
  parsePolicy,
  policyText,
  rulesOf,
  type ViewBase,
  type ViewPolicy,
  type ViewRule,
  type ViewRules,
  type ViewWindow,
} from './view/policy.ts';
export { isPrune, type PrunedOutput, prune, prunedOutputs } from './view/pruned.ts';
export { renderState, type StoredMessage } from './view/render.ts';
export { type Selection, select, viewVersion } from './view/select.ts';
export { streamView, type ViewEnd } from './view/stream.ts';
export { type CountTokens, entryTokens, estimateTokens, textTokens, usedSinceStep } from './view/tokens.ts';
export { type View, type ViewOptions, view } from './view/view.ts';
