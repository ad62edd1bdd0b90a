import { isAbsolute } from 'node:path';
import type { Entry, JsonObject, Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { artifactOf, isObject, isObjectName } from '@tapedeck/tape/internal';
import type { RecordedArtifact, WorktreeRequest } from '@tapedeck/tape/store';

/** The store and the home that hold worktrees. */
export interface WorkspacePlace {
  readonly store: TapeStore;
  /** The tape home; without one, worktrees are unavailable. */
  readonly home: string | undefined;
}

/** The event that marks a worktree as in use. */
export const workspaceOpened = 'workspace/opened';

/** One opening of a worktree. */
interface Opened {
  readonly seq: Seq;
  /** The commit at which it was made, and the tree of the commit. */
  readonly commit: string;
  readonly tree: string;
}

/** The facts on a child's tape about its worktree. */
export interface WorkspaceNotes {
  readonly child: SessionInfo;
  readonly worktree: WorktreeRequest;
  /** They were recorded before the home came here: no git runs in the repository that they name. */
  readonly elsewhere: boolean;
  /** The openings, oldest first. */
  readonly opened: readonly Opened[];
  /** The recorded patches, oldest first. */
  readonly closed: readonly RecordedArtifact[];
}

/** Reads the facts on a child's tape about its worktree; undefined for a session forked without one. */
export async function readNotes(store: TapeStore, ref: string): Promise<WorkspaceNotes | undefined> {
  const child = await store.sessions.find(ref);
  if (child?.parentId === undefined) return undefined;
  let worktree: WorktreeRequest | undefined;
  let elsewhere = false;
  // Only a fork can write this entry, so no appended entry can choose the directory in which git runs.
  for await (const entry of store.entries.read(child.id, { from: child.base + 1, to: child.base + 1 })) {
    worktree = worktreeIn(entry);
    elsewhere = entry.elsewhere === true;
  }
  if (worktree === undefined) return undefined;
  const events = await Array.fromAsync(store.entries.read(child.id, { kind: 'event', own: true }));
  return {
    child,
    worktree,
    elsewhere,
    opened: events.flatMap(openedIn),
    closed: events.flatMap((entry) => {
      const artifact = artifactOf(entry);
      return artifact === undefined ? [] : [{ seq: entry.seq, artifact }];
    }),
  };
}

/** The worktree that a session's `fork/start` assigns to it. Pure. */
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

/** Whether a worktree may hold unrecorded changes: it was opened after the last recording. Pure. */
export function isInUse({ opened, closed }: Pick<WorkspaceNotes, 'opened' | 'closed'>): boolean {
  return (opened.at(-1)?.seq ?? 0) > (closed.at(-1)?.seq ?? 0);
}

/**
 * The tree at which the next patch begins: it contains merged changes, but not those only recorded.
 * `mergedTo` is the last merged position of the child. Pure.
 */
export function baseOf({ opened, closed }: WorkspaceNotes, mergedTo: Seq): string | undefined {
  return closed.findLast(({ seq }) => seq <= mergedTo)?.artifact.tree ?? opened[0]?.tree;
}

/** The chain of patches from the state at which the child began to the last one recorded. Pure. */
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

/** The last position of a child that a merge or a discard covers; 0 if none does. */
export async function deliveredTo(
  store: TapeStore,
  child: SessionInfo,
  { merged = false }: { readonly merged?: boolean } = {},
): Promise<Seq> {
  if (child.delivery === undefined) return 0;
  let last = 0;
  for (let at = child.parentId; at !== undefined; at = (await store.sessions.find(at))?.parentId)
    for await (const { name, payload } of store.entries.read(at, { kind: 'anchor', own: true })) {
      const state: JsonObject =
        isObject(payload) && isObject(payload.state) && name === `merge/${child.session}`
          ? payload.state
          : {};
      if (state.child !== child.id || (merged && state.strategy === 'discard')) continue;
      last = Math.max(last, Array.isArray(state.range) ? Number(state.range[1]) : 0);
    }
  return last;
}
