import { openTapeStore, type SqliteTapeStore, type StoreOptions, TapeError } from '@tapedeck/tape';
import { fixedClock } from './clock.ts';
import { countedIds, countedSalts } from './ids.ts';

/** Time, ids and salts that are equal in every run. */
export function fixedSources(): Required<Pick<StoreOptions, 'now' | 'newId' | 'salt'>> {
  return { now: fixedClock({ stepMs: 1000 }).now, newId: countedIds(), salt: countedSalts() };
}

/** A store with fixed sources; in memory unless a path is given. */
export function openStore(path = ':memory:', o: StoreOptions = {}): SqliteTapeStore {
  return openTapeStore(path, {
    durability: 'fast',
    homeId: '01JD000000000000000000H0ME',
    ...fixedSources(),
    ...o,
  });
}

/**
 * The error that an act is refused with.
 * @throws TypeError when the act is not refused, or fails in another way
 */
export function refusal(act: () => unknown): TapeError {
  try {
    act();
  } catch (error) {
    if (error instanceof TapeError) return error;
    throw error;
  }
  throw new TypeError('the act was not refused');
}
