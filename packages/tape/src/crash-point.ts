/**
 * The places where a test can stop the store as a crash would. Each lies after the part of an act that it
 * names, unless its name says otherwise. Tests assert that every place is reached, so the list stays current.
 */
export const crashPoints = [
  'append/entry',
  'append/calls',
  'append/state',
  'append/head',
  'session/tape',
  'session/entries',
  'session/lineage',
  'fork/tape',
  'fork/entries',
  'fork/lineage',
  'merge/entries',
  'merge/touches',
  'merge/delivery',
  'merge/lineage',
  'status/row',
  'status/lineage',
  'alias/lineage',
  'alias/row',
  'unalias/lineage',
  'unalias/row',
  'delete/names',
  'delete/names-again',
  'lineage/row',
  'publish/visible',
  'publish/lineage',
  'bundle/scanned',
  'bundle/tape',
  'bundle/entry',
  'bundle/entries',
  'bundle/lines',
  'bundle/state',
  'bundle/filled',
  'bundle/verified',
  'redact/entry',
  'redact/body',
  'redact/index',
  'redact/bytes',
  'redact/before-checkpoint',
  'wipe/words',
  'purge/entries',
  'purge/bodies',
  'purge/beside',
  'purge/before-checkpoint',
  'lease/epoch',
  'lease/row',
  'lease/row-gone',
  'lease/epoch-moved',
  'inbox/posted',
  'inbox/handled',
  'inbox/removed',
  'inbox/ownerless-leased',
  'inbox/ownerless-drained',
  'inbox/ownerless-released',
  'settle/appended',
  'commit/before',
  'commit/after',
  'outbox/locked',
  'outbox/before-append',
  'outbox/appended',
  'open/before-outbox',
  'open/before-inboxes',
  'open/done',
] as const;

/** The places of pushes to a remote, and of pulls from one, in the order in which they are passed. */
export const remotePoints = [
  'directory/copied',
  'directory/named',
  'push/packed',
  'push/added',
  'push/known',
  'pull/read',
  'pull/taken',
  'pull/known',
] as const;

/**
 * The places of the creation of a home, in the order in which they are passed: the process says that it creates one, has
 * made the database and is about to record it; and another one, which has found that, waits.
 */
export const homePoints = ['home/claimed', 'home/opened', 'home/awaited'] as const;

export type CrashPoint =
  | (typeof crashPoints)[number]
  | (typeof remotePoints)[number]
  | (typeof homePoints)[number];

let hook: ((point: string) => void) | undefined;

/** Reports to the listener, if a test has set one, that the store reached a place. */
export function crashPoint(point: CrashPoint): void {
  reached(point);
}

/** The same for the places of packages that build on the store, which keep their own lists. */
export function reached(point: string): void {
  hook?.(point);
}

/**
 * Sets the listener for all stores and runs of this process, or removes it. An exception from the listener
 * acts like an error of the act itself: an open transaction is rolled back, and commits stay.
 */
export function onCrashPoint(listener: ((point: string) => void) | undefined): void {
  hook = listener;
}
