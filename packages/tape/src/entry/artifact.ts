import { isBlobRef } from './blob.ts';
import type { Entry, Seq } from './entry.ts';
import { isObject, type Json } from './json.ts';

/** Name of the event that records the changes in a session's worktree. */
export const workspaceClosed = 'workspace/closed';

/** A file that a patch changes. Paths are relative to the top of the repository. */
export interface PatchFile {
  readonly path: string;
  readonly change: 'added' | 'changed' | 'deleted' | 'renamed';
  /** The previous path of a renamed file. */
  readonly from?: string;
  /** Git's mode of the file after the change, e.g. `100644`; absent for a deleted file. */
  readonly mode?: string;
}

/** The changes that a child made to the files of a repository, as its merge delivers them. */
export interface Artifact {
  readonly type: 'patch';
  /**
   * SHA-256 of the patch, hex. The store keeps its bytes as a blob as long as the child's entry refers to
   * them.
   */
  readonly blob: string;
  readonly bytes: number;
  readonly files: readonly PatchFile[];
  /** Hashes (hex) of the git trees before and after the patch. */
  readonly base: string;
  readonly tree: string;
}

/**
 * Returns the artifact that an entry records. Any caller can append events, so a malformed one is no
 * artifact. Pure.
 */
export function artifactOf({
  kind,
  name,
  payload,
}: Pick<Entry, 'kind' | 'name' | 'payload'>): Artifact | undefined {
  if (kind !== 'event' || name !== workspaceClosed || !isObject(payload)) return undefined;
  const { base, tree, files, patch } = payload;
  if (!isBlobRef(patch) || patch.as !== 'bytes' || !isObjectName(base) || !isObjectName(tree))
    return undefined;
  if (!Array.isArray(files) || !files.every(isPatchFile)) return undefined;
  return { type: 'patch', blob: patch.hash, bytes: patch.size, files, base, tree };
}

/** Returns whether a value is a full git object name, SHA-1 or SHA-256. */
export function isObjectName(value: unknown): value is string {
  return typeof value === 'string' && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(value);
}

const changes: ReadonlySet<unknown> = new Set(['added', 'changed', 'deleted', 'renamed']);

function isPatchFile(value: Json): value is PatchFile & Json {
  if (!isObject(value)) return false;
  const { path, change, from, mode } = value;
  const isText = (field: Json | undefined) => field === undefined || typeof field === 'string';
  return typeof path === 'string' && changes.has(change) && isText(from) && isText(mode);
}

/** Returns the paths that a patch changes, each once, with the old path of a renamed file. Pure. */
export function patchPaths({ files }: Pick<Artifact, 'files'>): readonly string[] {
  return [...new Set(files.flatMap(({ path, from }) => (from === undefined ? [path] : [from, path])))];
}

/** An artifact and its position on the child's tape. */
export interface RecordedArtifact {
  readonly seq: Seq;
  readonly artifact: Artifact;
}
