/**
 * What a program imports from `@tapedeck/tape`: opening a store, drafts, views, errors, and the types of
 * these.
 *
 * @privateRemarks
 * The package has two more tiers: `store/index.ts` for the author of another store, and `internal.ts` for the
 * packages of this repository. It imports no other package.
 *
 * @module @tapedeck/tape
 */
export { type Copied, type CopyOptions, copyTapes } from './copy.ts';
export {
  anchor,
  assistant,
  compaction,
  type Draft,
  type Entry,
  type EntryKind,
  handoff,
  type Meta,
  note,
  type Part,
  result,
  type Seq,
  toolCall,
  toolResult,
  user,
} from './entry/entry.ts';
export type { Json, JsonObject } from './entry/json.ts';
export { sessionName } from './entry/session-name.ts';
export { TapeError, type TapeErrorCode } from './errors.ts';
export type { Forked } from './fork/fork.ts';
export type { ForkRequest, Inherit } from './fork/request.ts';
export type { Rewound } from './history/rewind.ts';
export type { MergeRequest } from './merge/plan.ts';
export type { Merged } from './merge/receipt.ts';
export type { Elsewhere } from './origin/elsewhere.ts';
export { processOwner } from './owner.ts';
export type { Redact, RedactOptions } from './secrets/redactor.ts';
export type { Secret } from './secrets/secrets.ts';
export { HomeStore } from './store/home.ts';
export { openTapeStore, SqliteTapeStore, type StoreOptions } from './store/sqlite.ts';
export type { TapeStore } from './store/store.ts';
export type { Appended } from './tape/append.ts';
export type { SessionInfo } from './tape/info.ts';
export type { Lease } from './tape/lease.ts';
export type { Point } from './tape/point.ts';
export type { Lifecycle, Ref, Task } from './tape/tape.ts';
export type { Target } from './view/dialect.ts';
export { remakeOf } from './view/manifest.ts';
export { parsePolicy, type ViewPolicy } from './view/policy.ts';
export { prune } from './view/pruned.ts';
export type { StoredMessage } from './view/render.ts';
export { streamView } from './view/stream.ts';
export { type View, type ViewOptions, view } from './view/view.ts';
