import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { stateOf, withSource } from '../output/session.ts';

/** A session, whether its process died during a run, and what it is in. */
export interface Stated {
  readonly info: SessionInfo;
  readonly isCut: boolean;
  readonly state: string;
}

/**
 * What sessions are in, for people, in the order in which they are given: what runs, waits or was interrupted says more
 * than that it is active, and so does it that the tape is all that is left of an import.
 */
export async function stated(store: HomeStore, infos: readonly SessionInfo[]): Promise<readonly Stated[]> {
  const active = infos.filter(({ lifecycle }) => lifecycle === 'active');
  const { interruptedAmong } = await import('@tapedeck/runtime/internal');
  const interrupted = await interruptedAmong(store, active);
  const owned = new Set(store.leases.list().map(({ id }) => id));
  return infos.map((info) => {
    const isCut = interrupted.has(info.id);
    return { info, isCut, state: withSource(isCut ? 'interrupted' : seenState(info, owned), info) };
  });
}

function seenState(info: SessionInfo, owned: ReadonlySet<string>): string {
  const state = stateOf(info);
  if (state !== 'active' && state !== 'running') return state;
  // Calls without a result wait for an answer.
  return owned.has(info.id) ? 'busy' : info.settled < info.head ? 'waiting' : state;
}

/** The number of sessions whose states are looked up at a time. */
const statedMax = 200;

/** The same for any number of sessions, a few at a time. */
export async function* statedInParts(store: HomeStore, found: Iterable<SessionInfo>): AsyncGenerator<Stated> {
  let infos: SessionInfo[] = [];
  for (const info of found) {
    infos.push(info);
    if (infos.length < statedMax) continue;
    yield* await stated(store, infos);
    infos = [];
  }
  yield* await stated(store, infos);
}
