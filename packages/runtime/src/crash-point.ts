import { onCrashPoint, reached } from '@tapedeck/tape/crash-point';

export { onCrashPoint };

/**
 * The points of a run where a test can simulate a crash, in addition to those of the store (`crashPoints`). A
 * point follows the act that it names, unless its name says `before`.
 */
export const runPoints = [
  'run/before-leftovers',
  'run/orphans-closed',
  'run/begun',
  'run/ended',
  'stream/before-save',
  'stream/saved',
  'answer/arrived',
  'answer/recorded',
  'call/approved',
  'call/before-run',
  'call/ran',
  'call/recorded',
  'batch/waiting',
] as const;

/** Crash points of a worktree. Runs without a worktree do not pass them. */
export const workspacePoints = [
  'workspace/created',
  'workspace/opened',
  'workspace/closed',
  'workspace/before-removal',
  'workspace/moved',
  'workspace/removed',
] as const;

/** Crash points of a delegation, from the fork of a child to its merge, and of a recovery. */
export const delegationPoints = [
  'spawn/forked',
  'child/started',
  'child/ended',
  'child/before-merge',
  'child/posted',
  'child/merged',
  'parent/woken',
  'parent/continued',
  'result/requested',
  'result/recorded',
  'parent/settled',
  'recover/child-ended',
  'recover/child-merged',
] as const;

/** A named point at which a test can stop the runtime as a crash would. */
export type RunPoint =
  | (typeof runPoints)[number]
  | (typeof workspacePoints)[number]
  | (typeof delegationPoints)[number];

/** Notifies a test's listener that a point was reached. Does nothing in production. */
export function runPoint(point: RunPoint): void {
  reached(point);
}
