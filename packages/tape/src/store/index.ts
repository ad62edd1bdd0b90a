/**
 * What the author of another `TapeStore` imports from `@tapedeck/tape/store`: the types of its groups, their options,
 * requests and receipts, and the rules that every store follows: forms of entries and names, hashes, and known options.
 * `@tapedeck/tape/store/conformance` tests the result.
 *
 * @module @tapedeck/tape/store
 */
export type { Adopted, AdoptedSession, AdoptProgress, LeftOut } from '../bundle/adopt.ts';
export type { BundleScope } from '../bundle/bundle.ts';
export type { BundlePart, SessionHead } from '../bundle/part.ts';
export type { BundleSource } from '../bundle/unpack.ts';
export type { BundleWritten } from '../bundle/write.ts';
export type { Problem } from '../check/problem.ts';
export type { Beside } from '../db/db.ts';
export type { Artifact, PatchFile, RecordedArtifact } from '../entry/artifact.ts';
export {
  type BlobRef,
  blobBytesMax,
  blobHashes,
  isBlobRef,
  isTextRef,
  restoreBlobs,
  type TextRef,
} from '../entry/blob.ts';
export { type ChildNaming, childName, taskSlug } from '../entry/child-name.ts';
export { assertDraft } from '../entry/encode.ts';
export type { Awaitable, Mark } from '../entry/entry.ts';
export { type Fields, type KnownFields, kindFault, type OptionFault, optionFault } from '../entry/fields.ts';
export { bodyHash, type ChainLink, entryHash, genesisHash, sha256 } from '../entry/hash.ts';
export { encodeJson, entryBytesMax, jsonDepthMax } from '../entry/json.ts';
export {
  derivedNameMax,
  isUlid,
  isWorkerName,
  nameFault,
  nameKey,
  nameMax,
  nearNames,
  parseAnchorName,
  parseName,
  tapeName,
} from '../entry/name.ts';
export { normalise } from '../entry/normalise.ts';
export type { Condition } from '../entry/recorded.ts';
export { type Touch, touchesOf } from '../entry/touch.ts';
export type { Deliver, DoneWork, WorktreeRequest } from '../fork/request.ts';
export type { Redacted, RedactPreview } from '../history/redact.ts';
export type { HandledItem, InboxBody, InboxDraft, InboxItem } from '../inbox/inbox.ts';
export type { FamilyLine, NewestQuery } from '../lineage/family.ts';
export {
  encodeLine,
  firstLinePrev,
  type GraphReceipt,
  hashLine,
  type Journal,
  type LineageLine,
  type LineageType,
  type LineIntention,
} from '../lineage/line.ts';
export type { LinkReceipt } from '../lineage/link.ts';
export type { Intention, LinkRequest } from '../lineage/outbox.ts';
export type { LineageQuery } from '../lineage/read.ts';
export type { Collected } from '../merge/collect.ts';
export type { Conflict, ConflictReport } from '../merge/conflicts.ts';
export type { MergeDraft, MergeStrategy } from '../merge/plan.ts';
export { type Owner, provablyDead } from '../owner.ts';
export type { OnProgress, Progress, ProgressOptions } from '../progress.ts';
export type { Hit, SearchQuery, SearchResult } from '../search/search.ts';
export type { UnfinishedImport, UnfinishedQuery } from '../session/discard.ts';
export type { Purged, PurgePreview } from '../session/purge.ts';
export type { Alias, SessionChange, SessionInit } from '../session/session.ts';
export type { StageInit } from '../session/stage.ts';
export type { CallsQuery, ModelCalls } from '../tape/calls.ts';
export type { LiveQuery, LiveRun, LiveStream, StreamChunk } from '../tape/chunks.ts';
export type { SessionCounts, SessionLink } from '../tape/info.ts';
export type { SessionRange } from '../tape/interval.ts';
export { fenced, leaseTtlMs, type SessionOwner } from '../tape/lease.ts';
export type { SessionOrder, SessionQuery, Unfinished } from '../tape/listing.ts';
export type { RunItem } from '../tape/post.ts';
export type { Delivery } from '../tape/tape.ts';
export type { BackupOptions, BackupProgress } from './backup.ts';
export type { AdoptOptions, BundleOptions, Bundles } from './bundles.ts';
export {
  type AppendOptions,
  assertOptions,
  type ByteRange,
  type DiscardOptions,
  type DrainOptions,
  type EntryQuery,
  type ErasureOptions,
  fieldsOf,
  type LeaseOptions,
  type LinkOptions,
  type RangeQuery,
  type ReleaseOptions,
  type ResolveOptions,
  type RewindOptions,
  type UnrewindOptions,
  type ViewQuery,
  type WriteOptions,
} from './options.ts';
export type { ForkPreview, MergePreview, PreviewEntry } from './preview.ts';
export type {
  DiscardedImports,
  Entries,
  History,
  Identities,
  Identity,
  Imports,
  Inbox,
  Leases,
  Lineage,
  Linked,
  Live,
  Posted,
  Resolved,
  Sequence,
  Sessions,
  Views,
} from './store.ts';
export { type StoreCall, wrapStore } from './wrap.ts';
