import { join } from 'node:path';
import type { Bench } from '../topic.ts';
import { peers } from './all.ts';
import { install } from './install.ts';
import type { Peer } from './peer.ts';
import { type Installed, type Place, result } from './process.ts';

/** A peer with its homes. */
export interface Ready extends Installed {
  /** Its name and version. */
  readonly store: string;
  /** A home with one long session. */
  readonly long: Place;
  /** A home with a session of a turn, which stays short. */
  readonly short: Place;
  /** A home with many sessions. */
  readonly many: Place;
}

/** Entries of a long and a short session, how many sessions are many, and how often each is written to. */
export interface Sizes {
  readonly long: number;
  readonly short: number;
  readonly many: number;
  readonly appends: number;
  readonly writes: number;
}

interface Preparation {
  readonly peer: Peer;
  readonly program: string;
  readonly texts: string;
  readonly sizes: Sizes;
}

/** Installs a peer and makes its homes. */
export async function prepare(bench: Bench, { peer, program, texts, sizes }: Preparation): Promise<Ready> {
  const start = performance.now();
  const dir = join(bench.dir, 'peers', String(peers.indexOf(peer)));
  const installed: Installed = { peer, program, modules: await install(peer, join(dir, 'install')) };
  const home = async (name: string, entries: number, sessions: number): Promise<Place> => {
    const path = join(dir, name);
    const task = { work: 'fill', texts, entries, sessions } as const;
    return { home: path, session: (await result(installed, path, task)).session };
  };
  const ready = {
    ...installed,
    store: [peer.name, ...Object.values(peer.packages).slice(0, 1)].join(' '),
    long: await home('long', sizes.long, 1),
    short: await home('short', 2, 1),
    many: await home('many', 2, sizes.many),
  };
  const packages = Object.entries(peer.packages).map((pinned) => pinned.join(' '));
  if (packages.length > 0) bench.note(`${peer.name}: ${packages.join(', ')}`);
  for (const [work, reason] of Object.entries(peer.cannot ?? {}))
    bench.note(`${peer.name} does not do '${work}': ${reason}`);
  bench.say(`${ready.store}: ready in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  return ready;
}
