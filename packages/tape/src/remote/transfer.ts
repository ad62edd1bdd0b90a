import type { HomeStore } from '../store/home.ts';
import type { Packs } from './packs.ts';
import type { Peer } from './peer.ts';
import { type Pulled, type PullOptions, pullPacks } from './pull.ts';
import { type Pushed, type PushOptions, pushPacks } from './push.ts';

/** A place to which a home pushes, and from which others pull: packs, or another home. */
export type Remote = Packs | Peer;

/**
 * Sends to a remote what it lacks of some sessions, as one bundle, which is there as a whole or not at all. A session of
 * which the remote has entries that are not here is refused, and the others are sent.
 * @throws TAPE_NO_SESSION; TAPE_REMOTE_FAILED; TAPE_BAD_REMOTE; TAPE_BAD_BUNDLE for a pack that cannot be read
 *
 * @example
 * ```ts
 * import { openTapeStore } from '@tapedeck/tape';
 * import { openRemote, push, remoteUrl } from '@tapedeck/tape/remotes';
 *
 * using here = openTapeStore(':memory:');
 * here.sessions.open('main');
 * const state = 'remotes/origin';
 * const remote = await openRemote(remoteUrl('packs', process.cwd()), { state });
 * console.log((await push(here, remote, { state })).entries); // 1
 * ```
 */
export async function push(store: HomeStore, remote: Remote, o: PushOptions): Promise<Pushed> {
  return 'list' in remote ? await pushPacks(store, remote, o) : await remote.push(store, o);
}

/**
 * Takes in what a remote has and the home lacks. Each bundle of it is verified and committed as a whole, so that a pull
 * that was interrupted is continued by pulling again. Sessions that cannot be taken are left out, with those that need
 * them.
 * @throws TAPE_REMOTE_FAILED; TAPE_BAD_REMOTE when packs are gone or changed that were there before; TAPE_IO
 */
export async function pull(store: HomeStore, remote: Remote, o: PullOptions): Promise<Pulled> {
  return 'list' in remote ? await pullPacks(store, remote, o) : await remote.pull(store, o);
}

/**
 * Looks whether a remote is there, before something is made for it.
 * @throws TAPE_REMOTE_FAILED; TAPE_BAD_REMOTE
 */
export async function reach(remote: Remote): Promise<void> {
  await ('list' in remote ? remote.list() : remote.reach());
}
