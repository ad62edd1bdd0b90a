import { reached } from '@tapedeck/tape/crash-point';

/**
 * The places of a run where a test may stop it as a crash would, beside those of the store (`crashPoints`). Each stands
 * after what it names, but for those whose name says otherwise.
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

/** The same of a worktree's life, which runs without one do not pass. */
export const workspacePoints = [
  'workspace/created',
  'workspace/opened',
  'workspace/closed',
  'workspace/before-removal',
  'workspace/moved',
  'workspace/removed',
] as const;

/** The same of a delegation, from the fork of a child to its merge, and of a recovery. */
export const delegationPoints = [
  'spawn/forked',
  'child/started',
  'child/ended',
  'child/before-merge',
  'child/posted',
  'child/merged',
  'parent/woken',
  'result/asked',
  'result/recorded',
  'parent/settled',
  'recover/child-ended',
  'recover/child-merged',
] as const;

export type RunPoint =
  | (typeof runPoints)[number]
  | (typeof workspacePoints)[number]
  | (typeof delegationPoints)[number];

/** Tells whoever listens that a place was reached. Nobody does in production: then it does nothing. */
export function runPoint(point: RunPoint): void {
  reached(point);
}
