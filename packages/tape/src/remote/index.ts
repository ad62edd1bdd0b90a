/**
 * Remotes: places to which a home pushes its sessions, and from which others pull them. Only a program that does so loads
 * this. `packs.ts` says what a place of packs is; `directory.ts` is one. `url.ts` reads URLs, and `open.ts` opens what they
 * name. `known.ts` keeps what was seen of the packs of a remote, `seen.ts` reads those that were not, `choose.ts` decides
 * what a push sends, and `push.ts` and `pull.ts` do it. Imports `store`, `bundle` and what lies below them.
 *
 * @module @tapedeck/tape/remotes
 */
export type { LeftOut } from '../bundle/adopt.ts';
export type { NotSent, SentSession } from './choose.ts';
export { openRemote, type RemoteOptions } from './open.ts';
export type { Pack, Packs } from './packs.ts';
export { type Pulled, type PulledSession, type PullOptions, pull } from './pull.ts';
export { type Pushed, type PushOptions, push } from './push.ts';
export { remoteUrl } from './url.ts';
