import type { Draft } from '../entry/entry.ts';
import { sha256 } from '../entry/hash.ts';
import { encodeJson, type Json, type JsonObject } from '../entry/json.ts';
import type { Intention } from '../lineage/outbox.ts';
import type { Point } from '../tape/point.ts';
import type { Task } from '../tape/tape.ts';

/** Part of a session: positions `(since, cut]`. By default from the start to the settled head. */
export interface Span {
  readonly since?: Point;
  readonly cut?: Point;
}

/** How a child's result is to come back (K32). */
export type Deliver = 'merge' | 'merge+turn' | 'tool-result';

/** A worktree that a child is to work in: of which repository, and where that has its git directory. */
export interface WorktreeRequest {
  /** The top of the working tree whose state it begins with. */
  readonly repository: string;
  /** The git directory that all worktrees of the repository share. */
  readonly git: string;
}

export interface ForkRequest extends Span {
  /** Inherit nothing. */
  readonly fresh?: boolean;
  readonly name?: string;
  /** The same key on the same parent is the same child. */
  readonly key?: string;
  readonly intention?: Intention;
  readonly kind?: string;
  readonly deliver?: Deliver;
  /** The tool call that asked for the child. */
  readonly spawnCall?: string;
  /** Inherit the last so many messages before the cut, and what lies between them (K31). */
  readonly window?: number;
  /** What the child runs with; what it leaves out is as its parent's own settings say. */
  readonly settings?: JsonObject;
  /** What holds for this child alone, and for none of its children. */
  readonly terms?: JsonObject;
  /** What else was asked for, by which a repetition is told from another request: settings and terms may follow from the moment. */
  readonly asked?: JsonObject;
  /** Recorded for whoever runs the child: the store makes no worktree. */
  readonly worktree?: WorktreeRequest;
  readonly title?: string;
  /** Left out of lists. */
  readonly ephemeral?: boolean;
  /** Refuse while somebody is writing the parent. */
  readonly whenIdle?: boolean;
  /** Refuse a cut that a rewind hides. */
  readonly whereShown?: boolean;
  /** What the child did already: it is written with it, in the same transaction, so that there is never a half of it. */
  readonly done?: DoneWork;
}

/** The work of a child that is recorded when it is over. */
export interface DoneWork {
  /** Its entries, as `append` takes them. */
  readonly drafts: readonly Draft[];
  /** How it ended. */
  readonly task: Exclude<Task, 'running'>;
}

/** What was asked, not what it resolved to: the same request repeats after the parent grew. */
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
  // Requests without these have had their hash since before there were any.
  if (window !== undefined || more !== undefined) asked.push({ window: window ?? null, ...more });
  return Buffer.from(sha256(encodeJson(asked, 'a fork request')), 'hex');
}

/** What a request is called when it is refused: a child of its parent's own kind is a branch. */
export function actOf({ kind }: ForkRequest): 'fork' | 'branch' {
  return kind === 'session' ? 'branch' : 'fork';
}
