/**
 * The places where a test may stop the store as a crash would, act by act. Each stands after the part of an act that it
 * names, but for those whose name says otherwise. The tests assert that every one of them is passed, so that the list
 * cannot rot.
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
  'lineage/row',
  'publish/visible',
  'publish/lineage',
  'redact/entry',
  'redact/body',
  'redact/index',
  'redact/bytes',
  'redact/before-checkpoint',
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

export type CrashPoint = (typeof crashPoints)[number];

let hook: ((point: string) => void) | undefined;

/** Tells whoever listens that a place of the store was reached. Nobody does in production: then it does nothing. */
export function crashPoint(point: CrashPoint): void {
  reached(point);
}

/** The same for a place of a package that builds on the store, which has a list of its own. */
export function reached(point: string): void {
  hook?.(point);
}

/**
 * Listens to all stores and runs of this process until it is called with nothing. What the listener throws leaves the act as
 * an error of its own would: a transaction under way is rolled back, what was committed stays.
 */
export function onCrashPoint(listener: ((point: string) => void) | undefined): void {
  hook = listener;
}
