import type { Ref, TapeStore } from '@tapedeck/tape';
import type { PatchFile } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';
import { type GitCall, git, gitFailed, tryGit } from './git.ts';
import { baseOf, deliveredTo, isInUse, readNotes, type WorkspacePlace } from './notes.ts';
import { withSnapshot } from './repository.ts';
import { isDirectory, noWorkspace, worktreeOf } from './worktree.ts';

/** The change from one state of files to another. */
export interface Patch {
  /** The git trees before and after, in hex. */
  readonly base: string;
  readonly tree: string;
  readonly bytes: Buffer;
  readonly files: readonly PatchFile[];
}

/** The largest patch, and the longest list of its files as JSON, that can be recorded, in bytes. */
const patchMax = 16 * 1024 * 1024;
const listMax = 4 * 1024 * 1024;

/** Detects renames among at most 1,000 files, which bounds the time. */
const renames = ['--find-renames', '-l1000'];

/**
 * The changes in a child's worktree since it began, or since the last merge. Undefined for a child without a
 * worktree, for one that was never made, and for one that was removed after its changes were recorded. Writes
 * nothing.
 * @throws SESSION_PATCH_TOO_LARGE, SESSION_WORKSPACE_FAILED, SESSION_NO_GIT, SESSION_NO_WORKSPACE
 */
export async function diffOf(place: WorkspacePlace, child: Ref): Promise<Patch | undefined> {
  const notes = await readNotes(place.store, child);
  if (notes === undefined) return undefined;
  const base = baseOf(notes, await mergedTo(place.store, notes.child.id));
  if (base === undefined) return undefined;
  const { session } = notes.child;
  const doing = `read the worktree of '${session}'`;
  const worktree = await worktreeOf(place, notes);
  if (!(await isDirectory(worktree.top))) {
    if (!isInUse(notes)) return undefined;
    throw await noWorkspace(doing, worktree, notes);
  }
  return await withSnapshot(worktree, { doing, keep: false }, async ({ tree, call }) =>
    patchBetween(call, { base, tree, session }),
  );
}

/** The last merged position of a child. */
export async function mergedTo(store: TapeStore, child: Ref): Promise<number> {
  const info = await store.sessions.find(child);
  return info === undefined ? 0 : await deliveredTo(store, info, { merged: true });
}

/**
 * The patch between two trees, including binary files. It has full object names, so that it can be merged
 * three-way.
 * @throws SESSION_PATCH_TOO_LARGE; nothing was written
 */
export async function patchBetween(
  call: GitCall,
  { base, tree, session }: { readonly base: string; readonly tree: string; readonly session: string },
): Promise<Patch> {
  const listed = await git(call, 'diff-tree', '-r', '-z', '--raw', ...renames, base, tree);
  const files = filesIn(listed.toString('utf8'));
  const listBytes = Buffer.byteLength(JSON.stringify(files));
  if (listBytes > listMax)
    throw tooLarge(session, `the list of its ${files.length} files exceeds ${listMax} bytes`);
  const form = ['--binary', '--full-index', '--no-ext-diff', '--no-textconv', '--no-color', '-O/dev/null'];
  const printed = await tryGit(call, ['diff-tree', '-p', '-r', ...form, ...renames, base, tree], {
    bytesMax: patchMax,
  });
  if (printed.isCut) throw tooLarge(session, `its patch exceeds ${patchMax} bytes`);
  if (!printed.ok) throw gitFailed(call.doing, printed.stderr);
  return { base, tree, bytes: printed.stdout, files };
}

function tooLarge(session: string, why: string): SessionError {
  return new SessionError(
    'SESSION_PATCH_TOO_LARGE',
    `cannot record the changes in the worktree of '${session}': ${why}`,
    { data: { session, bytesMax: patchMax } },
  );
}

/**
 * Parses `git diff-tree --raw -z`: for each file modes, objects and a letter, then one path or, for a renamed
 * file, two. Pure.
 */
function filesIn(raw: string): readonly PatchFile[] {
  const fields = raw.split('\0');
  const files: PatchFile[] = [];
  for (let i = 0; i + 1 < fields.length; ) {
    const [, mode = '', , , letter = ''] = (fields[i] ?? '').split(' ');
    const isRenamed = letter.startsWith('R');
    const [from, path = ''] = isRenamed ? [fields[i + 1], fields[i + 2]] : [undefined, fields[i + 1]];
    files.push({
      path,
      change: isRenamed ? 'renamed' : (changes[letter] ?? 'changed'),
      ...(from !== undefined && { from }),
      ...(letter !== 'D' && { mode }),
    });
    i += isRenamed ? 3 : 2;
  }
  return files;
}

const changes: Readonly<Record<string, PatchFile['change']>> = { A: 'added', D: 'deleted' };
