/**
 * Remotes: places to which a home pushes its sessions, and from which others pull them. Only a program that does so loads
 * this. `packs.ts` says what a place of packs is; `directory.ts` is one, and `git.ts` another. `url.ts` reads URLs, and
 * `open.ts` opens what they name. `known.ts` keeps what was seen of the packs of a remote, `seen.ts` reads those that were
 * not, `choose.ts` decides what a push sends, and `push.ts` and `pull.ts` do it; `transfer.ts` does the same for
 * any remote.
 *
 * `git-address.ts` says which repositories may be named, `git-cache.ts` keeps what was fetched, `git-tree.ts` reads a
 * commit of packs, and `git-call.ts` runs git, which `program.ts` starts and ends.
 *
 * `peer.ts` says what a home at the other side of a connection is, and `ssh.ts` is one. `ssh-address.ts` reads its URL, and
 * `ssh-connection.ts` starts ssh. `wire.ts` has the lines that both sides say, `exchange.ts` what they mean, `buckets.ts`
 * what differs, and `serve.ts` answers at the other side.
 *
 * Imports `store`, `bundle` and what lies below them.
 *
 * @module @tapedeck/tape/remotes
 */
export type { LeftOut } from '../bundle/adopt.ts';
export type { NotSent, SentSession } from './choose.ts';
export { openRemote } from './open.ts';
export type { Pack, Packs, RemoteOptions } from './packs.ts';
export type { Peer } from './peer.ts';
export type { Pulled, PulledSession, PullOptions } from './pull.ts';
export type { Pushed, PushOptions } from './push.ts';
export { type ServedHome, serveHome } from './serve.ts';
export { pull, push, type Remote, reach } from './transfer.ts';
export { remoteUrl, shownUrl, urlSecrets } from './url.ts';
