import { randomUUID } from 'node:crypto';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crashPoint } from '../crash-point.ts';
import { type Owner, processOwner, provablyDead } from '../owner.ts';
import { filesIn, homesIn, makeHomes, readOwn, realPath } from './state-files.ts';

/** How long a claim counts, in milliseconds: it is not known of every process whether it has ended. */
const claimMs = 30_000;

const ending = '.claim';

/**
 * Says in the state directory that this process creates a home, until the claim is disposed of. Between making a database
 * and recording it, a home looks like one that came from elsewhere: who finds it waits for the record while there is a
 * claim. A claim gives no right: a home whose creator was killed before it recorded it needs trust.
 */
export function claimHome(state: string, dir: string): Disposable {
  const file = join(homesIn(state), `${randomUUID()}${ending}`);
  try {
    makeHomes(state);
    for (const left of filesIn(state, ending)) if (!doesCount(left)) rmSync(left, { force: true });
    const claim = { v: 1, ...processOwner(realPath(dir)) };
    writeFileSync(file, `${JSON.stringify(claim)}\n`, { mode: 0o600, flag: 'wx' });
  } catch {
    // Where no claim can be written, the home cannot be recorded either.
  }
  crashPoint('home/claimed');
  return { [Symbol.dispose]: () => release(file) };
}

/** The process that creates a home now; undefined when none has a claim on it, or none of them still counts. */
export function creatorOf(state: string, dir: string): Owner | undefined {
  const path = realPath(dir);
  return filesIn(state, ending)
    .filter(doesCount)
    .map(ownerIn)
    .find((owner) => owner?.id === path);
}

/** The owner of a claim. Its id is the path of the home. */
function ownerIn(file: string): Owner | undefined {
  const claim = readOwn(file);
  return typeof claim === 'object' && claim !== null ? (claim as Owner) : undefined;
}

/** Whether a claim is new, and its process has not ended: of one of another container or machine, no one knows. */
function doesCount(file: string): boolean {
  const made = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  // A clock that was set back must not make a claim last.
  const isNew = Math.abs(Date.now() - made) < claimMs;
  return isNew && !provablyDead(ownerIn(file) ?? {});
}

function release(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // It stops counting when the process ends.
  }
}
