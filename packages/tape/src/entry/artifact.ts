import { isBlobRef } from './blob.ts';
import type { Entry, Seq } from './entry.ts';
import { isObject, type Json } from './json.ts';

/** The event that puts what was done in a session's worktree on its tape. */
export const workspaceClosed = 'workspace/closed';

/** A file that a patch changes. Paths are relative to the top of the repository. */
export interface PatchFile {
  readonly path: string;
  readonly change: 'added' | 'changed' | 'deleted' | 'renamed';
  /** Where a renamed file was before. */
  readonly from?: string;
  /** Git's mode of the file afterwards, `100644` say; none for a deleted one. */
  readonly mode?: string;
}

/** What a child did to the files of a repository, as its merge brings it. */
export interface Artifact {
  readonly type: 'patch';
  /** SHA-256 of the patch, hex: the store has its bytes as a blob, for as long as the child's own entry has them. */
  readonly blob: string;
  readonly bytes: number;
  readonly files: readonly PatchFile[];
  /** The git trees, hex, that the patch leads from and to. */
  readonly base: string;
  readonly tree: string;
}

/** The artifact that an entry records, if it records one. Anybody may append events: what does not fit is none. Pure. */
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

/** Whether a value is the name that git gives an object: SHA-1 or SHA-256, in full. */
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

/** The paths that a patch touches: of a renamed file the old one, too. Each once. Pure. */
export function patchPaths({ files }: Pick<Artifact, 'files'>): readonly string[] {
  return [...new Set(files.flatMap(({ path, from }) => (from === undefined ? [path] : [from, path])))];
}

/** An artifact, and where on the child's tape it is recorded. */
export interface RecordedArtifact {
  readonly seq: Seq;
  readonly artifact: Artifact;
}
