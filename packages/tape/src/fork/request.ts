import type { Draft } from '../entry/entry.ts';
import { sha256 } from '../entry/hash.ts';
import { encodeJson, isObject, type Json, type JsonObject } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
import type { Intention } from '../lineage/outbox.ts';
import type { Point } from '../tape/point.ts';
import type { Task } from '../tape/tape.ts';

/**
 * How much of its parent a child inherits, up to the cut: `all` (default), `nothing`, the entries after a
 * point, or the last n messages with the entries between and after them. Messages that a rewind hides do not
 * count; a tool call and its results count as the one message of the call.
 */
export type Inherit = 'all' | 'nothing' | { readonly since: Point } | { readonly last: number };

/**
 * How the parent receives a child's result when the child's task ends. `merge`: merged. `merge+turn`: merged, and
 * the merge posts a message that starts a run of the parent. `notify`: not merged; the parent gets a message with
 * the state of the task. `tool-result`: as the result of the call that waits for it.
 */
export type Deliver = 'merge' | 'merge+turn' | 'notify' | 'tool-result';

/** The git repository of a child's worktree. */
export interface WorktreeRequest {
  /** Top directory of the working tree whose state the worktree starts with. */
  readonly repository: string;
  /** The git directory shared by all worktrees of the repository. */
  readonly git: string;
}

/**
 * A fork to make: what the child inherits, its name, its intention, its settings, and what it begins with.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const { head } = store.entries.append('main', [user('Plan the release.')]);
 * // No reader sees the child without its message, or with one that answers an older plan.
 * store.lineage.fork('main', { name: 'shorter', first: [user('Make it shorter.')], expectHead: head });
 * console.log(store.sessions.find('shorter')?.messageCount); // 1
 * ```
 */
export interface ForkRequest {
  /** How much the child inherits. Default: `all`. */
  readonly inherit?: Inherit;
  /** The end of what the child inherits. Default: the settled head of the parent. */
  readonly cut?: Point;
  readonly name?: string;
  /** Idempotency key: the same key on the same parent gives the same child. */
  readonly key?: string;
  readonly intention?: Intention;
  readonly kind?: string;
  readonly deliver?: Deliver;
  /** Id of the tool call that requested the child. */
  readonly spawnCall?: string;
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
  /** Throws TAPE_STALE_HEAD when the newest entry of the parent has another hash (hex) than the caller read. */
  readonly expectHead?: string;
  /**
   * What the child begins with, as `append` takes it: behind its intention, in the same transaction as the child, so that
   * no reader sees the one without the other. A repeated `key` does not compare it, and writes nothing.
   */
  readonly first?: readonly Draft[];
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

/** The entries that a request brings for the child: what it begins with, and its finished work. */
export function broughtBy({ first = [], done }: Pick<ForkRequest, 'first' | 'done'>): readonly Draft[] {
  return done === undefined ? first : [...first, ...done.drafts];
}

/**
 * Checks the form of `inherit`, which plain JavaScript can get wrong.
 * @throws TAPE_BAD_POINT
 */
export function assertInherit(parent: string, request: ForkRequest): void {
  const { inherit = 'all' } = request;
  const refuse = (why: string) =>
    new TapeError('TAPE_BAD_POINT', `cannot ${actOf(request)} '${parent}': ${why}`, {
      data: { session: parent, inherit: inherit as Json },
    });
  const { since, last, ...others } = partOf(inherit);
  const isPart =
    Object.keys(others).length === 0 &&
    (isPoint(since) ? last === undefined : last !== undefined && since === undefined);
  if (inherit !== 'all' && inherit !== 'nothing' && !isPart)
    throw refuse("inherit must be 'all', 'nothing', { since: POINT } or { last: N }");
  if (last !== undefined && !(Number.isSafeInteger(last) && last >= 1))
    throw refuse('inherit.last must be a positive whole number of messages');
}

function isPoint(since: unknown): boolean {
  return typeof since === 'string' || typeof since === 'number';
}

/** The part of the parent's history that `inherit` selects; empty for `all` and `nothing`. */
export function partOf(inherit: Inherit | undefined): {
  readonly since?: Point;
  readonly last?: number;
} {
  return isObject(inherit) ? inherit : {};
}

/** Hashes the request rather than what it resolves to, so that a repetition matches after the parent grew. */
export function hashRequest({ inherit, cut, name, intention, worktree, asked: more }: ForkRequest): Buffer {
  const { since, last } = partOf(inherit);
  const asked: Json[] = [
    since ?? null,
    cut ?? null,
    inherit === 'nothing',
    name ?? null,
    (intention ?? null) as Json,
    ...(worktree === undefined ? [] : [[worktree.repository, worktree.git]]),
  ];
  // Requests without these keep the hash that they had before these fields existed.
  if (last !== undefined || more !== undefined) asked.push({ window: last ?? null, ...more });
  return Buffer.from(sha256(encodeJson(asked, 'a fork request')), 'hex');
}

/** The verb for error messages: a child of kind `session` is a branch. */
export function actOf({ kind }: ForkRequest): 'fork' | 'branch' {
  return kind === 'session' ? 'branch' : 'fork';
}
