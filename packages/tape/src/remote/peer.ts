import type { HomeStore } from '../store/home.ts';
import type { Pulled, PullOptions } from './pull.ts';
import type { Pushed, PushOptions } from './push.ts';

/** A home at which tape runs: it takes and gives what the other one lacks, and nothing is kept of it. */
export interface Peer {
  /** What errors call the remote. */
  readonly url: string;
  /** @throws TAPE_REMOTE_FAILED when there is no such home, or it cannot be reached */
  reach(): Promise<void>;
  push(store: HomeStore, o: PushOptions): Promise<Pushed>;
  pull(store: HomeStore, o: PullOptions): Promise<Pulled>;
}
