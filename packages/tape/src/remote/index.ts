/**
 * Remotes: places to which a home pushes its sessions, and from which others pull them. Only a program that does so loads
 * this. `packs.ts` says what a place of packs is; `directory.ts` is one, and `git.ts` another. `url.ts` reads URLs, and
 * `open.ts` opens what they name. `known.ts` keeps what was seen of the packs of a remote, `seen.ts` reads those that were
 * not, `choose.ts` decides what a push sends, and `push.ts` and `pull.ts` do it.
 *
 * `git-address.ts` says which repositories may be named, `git-cache.ts` keeps what was fetched, `git-tree.ts` reads a
 * commit of packs, and `git-call.ts` runs git, which `program.ts` starts and ends.
 *
 * Imports `store`, `bundle` and what lies below them.
 *
 * @module @tapedeck/tape/remotes
 */
export type { LeftOut } from '../bundle/adopt.ts';
export type { NotSent, SentSession } from './choose.ts';
export { openRemote } from './open.ts';
export type { Pack, Packs, RemoteOptions } from './packs.ts';
export { type Pulled, type PulledSession, type PullOptions, pull } from './pull.ts';
export { type Pushed, type PushOptions, push } from './push.ts';
export { remoteUrl, shownUrl } from './url.ts';
