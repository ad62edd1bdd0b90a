/**
 * The path of an entry through merges: `sources.ts` follows it back to the entries that it was made of,
 * `destinations.ts` forward to the sessions that it was merged into. Reads only, and loads no AI SDK. Imports
 * `store-of`.
 */
import {
  type EntryKind,
  type Point,
  type Seq,
  type SessionInfo,
  TapeError,
  type TapeStore,
} from '@tapedeck/tape';
import { type StoreSource, storeOf } from '../store-of.ts';
import { destinationsOf, type TraceDestination } from './destinations.ts';
import { sourcesOf, type TraceSource } from './sources.ts';

export type { TraceDestination } from './destinations.ts';
export type { TraceSource } from './sources.ts';

/** The sources and destinations of an entry. */
export interface Trace {
  /** The requested session, and the one on whose own tape the entry is. */
  readonly session: string;
  readonly owner: string;
  readonly seq: Seq;
  readonly kind: EntryKind;
  readonly name?: string;
  /**
   * The children whose work the entry contains, for a merge's mark or message and for the result of a call
   * that started children.
   */
  readonly from: readonly TraceSource[];
  /** The merges that delivered it to other sessions. */
  readonly into: readonly TraceDestination[];
  /** The forks that inherit it, at most a hundred; `inheritedCount` is their number. */
  readonly inheritedBy: readonly string[];
  readonly inheritedCount: number;
}

/**
 * Traces an entry back to the children's entries from which it was made, through nested merges, and forward
 * to the sessions to which merges delivered it.
 * @throws TAPE_NO_SESSION, TAPE_NO_SEQ, TAPE_NO_ANCHOR; TAPE_CORRUPT
 *
 * @example
 * ```ts
 * import { openDeck, trace } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * const [tests] = await main.delegate('Check the tests.');
 * const { from } = await trace(deck.store, 'main', `merge/${tests.session}`);
 * console.log(from[0]?.session === tests.session); // true
 * ```
 */
export async function trace(source: StoreSource, session: string, point: Point): Promise<Trace> {
  const store = storeOf(source, 'trace an entry');
  const traced = await traceMerges(store, session, point);
  const owner = await ownerOf(store, await getInfo(store, session), traced.seq);
  return { ...traced, ...(await inheritors(store, owner, traced.seq)) };
}

/** The same without the forks that inherit the entry, of which a session can have thousands. */
export async function traceMerges(
  store: TapeStore,
  session: string,
  point: Point,
): Promise<Omit<Trace, 'inheritedBy' | 'inheritedCount'>> {
  const seq = await store.entries.resolve(session, point);
  const requested = await getInfo(store, session);
  const owner = await ownerOf(store, requested, seq);
  const [entry] = await Array.fromAsync(store.entries.read(owner.id, { own: true, from: seq, to: seq }));
  if (entry === undefined)
    throw new TapeError('TAPE_CORRUPT', `cannot trace '${owner.session}@${seq}': the entry is missing`, {
      data: { session: owner.session, seq },
    });
  const { kind, name } = entry;
  return {
    session: requested.session,
    owner: owner.session,
    seq,
    kind,
    ...(name !== undefined && { name }),
    from: await sourcesOf({ store, seen: new Set() }, owner, entry),
    into: await destinationsOf({ store, seen: new Set() }, owner.id, seq),
  };
}

async function getInfo(store: TapeStore, ref: string): Promise<SessionInfo> {
  const info = await store.sessions.find(ref);
  if (info === undefined) throw new TypeError(`session ${ref} has no row, but a point of it resolved`);
  return info;
}

/** The session on whose own tape a position lies. */
async function ownerOf(store: TapeStore, requested: SessionInfo, seq: Seq): Promise<SessionInfo> {
  let at = requested;
  while (seq <= at.base && at.parentId !== undefined) at = await getInfo(store, at.parentId);
  return at;
}

const inheritorsMax = 100;

/** The forks, and forks of forks, that inherit a position. */
async function inheritors(
  store: TapeStore,
  owner: SessionInfo,
  seq: Seq,
): Promise<Pick<Trace, 'inheritedBy' | 'inheritedCount'>> {
  const inheritedBy: string[] = [];
  let inheritedCount = 0;
  const parents = [owner.id];
  for (const parent of parents)
    for (const { id, session: name, floor, base } of await store.sessions.list({ parent, all: true })) {
      if (seq <= floor || seq > base) continue;
      parents.push(id);
      inheritedCount += 1;
      if (inheritedBy.length < inheritorsMax) inheritedBy.push(name);
    }
  return { inheritedBy, inheritedCount };
}
