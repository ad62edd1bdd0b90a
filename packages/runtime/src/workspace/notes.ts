import { isAbsolute } from 'node:path';
import {
  artifactOf,
  type Entry,
  isObject,
  isObjectName,
  type JsonObject,
  type RecordedArtifact,
  type Seq,
  type SessionInfo,
  type TapeStore,
  type WorktreeRequest,
} from '@tapedeck/tape';

/** Where worktrees are kept and told of. */
export interface WorkspacePlace {
  readonly store: TapeStore;
  /** The tape home; without one there are no worktrees. */
  readonly home: string | undefined;
}

/** The event that says that a worktree is in use from here on. */
export const workspaceOpened = 'workspace/opened';

/** A worktree that was taken into use. */
interface Opened {
  readonly seq: Seq;
  /** The commit that it was made at, and that commit's tree. */
  readonly commit: string;
  readonly tree: string;
}

/** All that a child's tape tells of its worktree. */
export interface WorkspaceNotes {
  readonly child: SessionInfo;
  readonly worktree: WorktreeRequest;
  /** Each time that it was taken into use, oldest first. */
  readonly opened: readonly Opened[];
  /** Each time that what was done in it was recorded, oldest first. */
  readonly closed: readonly RecordedArtifact[];
}

/** What a child's tape tells of its worktree; nothing of a session that is to have none. */
export async function readNotes(store: TapeStore, ref: string): Promise<WorkspaceNotes | undefined> {
  const child = await store.find(ref);
  if (child?.parentId === undefined) return undefined;
  let worktree: WorktreeRequest | undefined;
  // Only a fork writes such an entry: where git is run is no caller's word.
  for await (const entry of store.read(child.id, { from: child.base + 1, to: child.base + 1 }))
    worktree = worktreeIn(entry);
  if (worktree === undefined) return undefined;
  const events = await Array.fromAsync(store.read(child.id, { kind: 'event', own: true }));
  return {
    child,
    worktree,
    opened: events.flatMap(openedIn),
    closed: events.flatMap((entry) => {
      const artifact = artifactOf(entry);
      return artifact === undefined ? [] : [{ seq: entry.seq, artifact }];
    }),
  };
}

/** The worktree that a session is to work in, as the entry that forked it says. Pure. */
export function worktreeIn({ name, payload }: Entry): WorktreeRequest | undefined {
  if (name !== 'fork/start' || !isObject(payload) || !isObject(payload.worktree)) return undefined;
  const { repository, git } = payload.worktree;
  const isPath = (value: unknown): value is string => typeof value === 'string' && isAbsolute(value);
  return isPath(repository) && isPath(git) ? { repository, git } : undefined;
}

function openedIn({ name, payload, seq }: Entry): readonly Opened[] {
  if (name !== workspaceOpened || !isObject(payload)) return [];
  const { commit, tree } = payload;
  return isObjectName(commit) && isObjectName(tree) ? [{ seq, commit, tree }] : [];
}

/** Whether a worktree holds what is recorded nowhere: it was taken into use, and what was done in it was not recorded since. Pure. */
export function isInUse({ opened, closed }: Pick<WorkspaceNotes, 'opened' | 'closed'>): boolean {
  return (opened.at(-1)?.seq ?? 0) > (closed.at(-1)?.seq ?? 0);
}

/**
 * The tree that the next patch leads from: what was merged before is not in it, and what was only recorded is. `mergedTo`
 * is the last of the child's positions that was merged. Pure.
 */
export function baseOf({ opened, closed }: WorkspaceNotes, mergedTo: Seq): string | undefined {
  return closed.findLast(({ seq }) => seq <= mergedTo)?.artifact.tree ?? opened[0]?.tree;
}

/** The patches that lead, one after another, from what the child began with to what it recorded last. Pure. */
export function patchesOf({ closed }: WorkspaceNotes): readonly RecordedArtifact['artifact'][] {
  const patches: RecordedArtifact['artifact'][] = [];
  for (let at = closed.length - 1; at >= 0; ) {
    const artifact = closed[at]?.artifact;
    if (artifact === undefined) break;
    patches.unshift(artifact);
    at = closed.findLastIndex((before, i) => i < at && before.artifact.tree === artifact.base);
  }
  return patches.filter(({ bytes }) => bytes > 0);
}

/** The last of the child's positions that a merge or a discard has covered; 0 for none. */
export async function deliveredTo(
  store: TapeStore,
  child: SessionInfo,
  { merged = false }: { readonly merged?: boolean } = {},
): Promise<Seq> {
  if (child.delivery === undefined) return 0;
  let last = 0;
  for (let at = child.parentId; at !== undefined; at = (await store.find(at))?.parentId)
    for await (const { name, payload } of store.read(at, { kind: 'anchor', own: true })) {
      const state: JsonObject =
        isObject(payload) && isObject(payload.state) && name === `merge/${child.name}` ? payload.state : {};
      if (state.child !== child.id || (merged && state.strategy === 'discard')) continue;
      last = Math.max(last, Array.isArray(state.range) ? Number(state.range[1]) : 0);
    }
  return last;
}
