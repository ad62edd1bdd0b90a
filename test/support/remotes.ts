import { openTapeStore, type SqliteTapeStore, view } from '@tapedeck/tape';
import {
  openRemote,
  type Packs,
  type Pulled,
  type Pushed,
  pull,
  push,
  type RemoteOptions,
} from '@tapedeck/tape/remotes';
import { countedIds } from './ids.ts';
import type { TempDir } from './temp-dir.ts';

/** The packs of a URL that names some. */
export async function packsAt(url: string, o: RemoteOptions): Promise<Packs> {
  const remote = await openRemote(url, o);
  if ('list' in remote) return remote;
  throw new Error(`${url} has no packs`);
}

/** A home that pushes to and pulls from a directory of packs. */
export class SharingHome implements Disposable {
  readonly store: SqliteTapeStore;
  readonly state: string;
  readonly #url: string;

  constructor(dir: TempDir, name: string, { url = dir.file('packs'), salt = name } = {}) {
    this.store = openTapeStore(':memory:', { secrets: [], newId: countedIds(`01JD${salt.toUpperCase()}`) });
    this.state = dir.file(`${name}-state`);
    this.#url = url;
  }

  async push(
    o: { readonly sessions?: readonly string[]; readonly dryRun?: boolean; readonly raw?: boolean } = {},
  ): Promise<Pushed> {
    return await push(this.store, await openRemote(this.#url, this), {
      state: this.state,
      secrets: [],
      ...o,
    });
  }

  async pull(o: { readonly dryRun?: boolean } = {}): Promise<Pulled> {
    return await pull(this.store, await openRemote(this.#url, this), { state: this.state, ...o });
  }

  /** Hash of the head of each session, and digest of its view. */
  faces(): Readonly<Record<string, readonly string[]>> {
    const { sessions, views } = this.store;
    return Object.fromEntries(
      sessions
        .list({ all: true })
        .map(({ id, session, headHash }) => [session, [headHash, view(views.entries(id)).digest]]),
    );
  }

  damage(): readonly string[] {
    return [...this.store.verify()].map(({ message }) => message);
  }

  [Symbol.dispose](): void {
    this.store[Symbol.dispose]();
  }
}
