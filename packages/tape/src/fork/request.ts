import type { Draft } from '../entry/entry.ts';
import { sha256 } from '../entry/hash.ts';
import { encodeJson, type Json, type JsonObject } from '../entry/json.ts';
import type { Intention } from '../lineage/outbox.ts';
import type { Point } from '../tape/point.ts';
import type { Task } from '../tape/tape.ts';

/** Part of a session: positions `(since, cut]`. Default: from the start to the settled head. */
export interface Span {
  readonly since?: Point;
  readonly cut?: Point;
}

/** How the parent receives a child's result. */
export type Deliver = 'merge' | 'merge+turn' | 'tool-result';

/** The git repository of a child's worktree. */
export interface WorktreeRequest {
  /** Top directory of the working tree whose state the worktree starts with. */
  readonly repository: string;
  /** The git directory shared by all worktrees of the repository. */
  readonly git: string;
}

export interface ForkRequest extends Span {
  /** Inherit nothing. */
  readonly fresh?: boolean;
  readonly name?: string;
  /** Idempotency key: the same key on the same parent gives the same child. */
  readonly key?: string;
  readonly intention?: Intention;
  readonly kind?: string;
  readonly deliver?: Deliver;
  /** Id of the tool call that requested the child. */
  readonly spawnCall?: string;
  /** Inherit the last N messages before the cut, and the entries between them. */
  readonly window?: number;
  /** Settings of the child; a missing one is inherited from the parent. */
  readonly settings?: JsonObject;
  /** Terms of this child only; its own children do not inherit them. */
  readonly terms?: JsonObject;
  /**
   * Further content of the request, compared when `key` is repeated. Settings and terms are not: they may
   * vary by time.
   */
  readonly asked?: JsonObject;
  /** Recorded for the process that runs the child. The store creates no worktree. */
  readonly worktree?: WorktreeRequest;
  readonly title?: string;
  /** Hides the child from lists. */
  readonly ephemeral?: boolean;
  /** Throws TAPE_BUSY while the parent has a live lease. */
  readonly whenIdle?: boolean;
  /** Throws TAPE_BAD_POINT for a cut that a rewind hides. */
  readonly whereShown?: boolean;
  /** The child's finished work, written in the same transaction as the child. */
  readonly done?: DoneWork;
}

/** Work that a child had finished before it was recorded. */
export interface DoneWork {
  /** The child's entries, as `append` takes them. */
  readonly drafts: readonly Draft[];
  /** The child's final task state. */
  readonly task: Exclude<Task, 'running'>;
}

/** Hashes the request rather than what it resolves to, so that a repetition matches after the parent grew. */
export function hashRequest({
  since,
  cut,
  fresh,
  name,
  intention,
  worktree,
  window,
  asked: more,
}: ForkRequest): Buffer {
  const asked: Json[] = [
    since ?? null,
    cut ?? null,
    fresh ?? false,
    name ?? null,
    (intention ?? null) as Json,
    ...(worktree === undefined ? [] : [[worktree.repository, worktree.git]]),
  ];
  // Requests without these keep the hash that they had before these fields existed.
  if (window !== undefined || more !== undefined) asked.push({ window: window ?? null, ...more });
  return Buffer.from(sha256(encodeJson(asked, 'a fork request')), 'hex');
}

/** The verb for error messages: a child of kind `session` is a branch. */
export function actOf({ kind }: ForkRequest): 'fork' | 'branch' {
  return kind === 'session' ? 'branch' : 'fork';
}
