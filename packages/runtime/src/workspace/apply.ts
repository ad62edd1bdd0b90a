import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Ref } from '@tapedeck/tape';
import { patchPaths } from '@tapedeck/tape/internal';
import type { Artifact } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';
import { setAside } from './files.ts';
import { type GitCall, git, gitLine, onDisk, tryGit } from './git.ts';
import { patchesOf, readNotes, type WorkspacePlace } from './notes.ts';
import { callIn, findRepository, type Repository, withSnapshot } from './repository.ts';

/** The plan of applying a child's patches to a working tree. */
export interface Application {
  /**
   * `ready`: files would change; `already`: the files have the changes already; `empty`: the child changed no
   * files.
   */
  readonly state: 'ready' | 'already' | 'empty';
  /** The top of the working tree. */
  readonly dir: string;
  /** The files that would change, relative to `dir`. */
  readonly files: readonly string[];
  /**
   * Changes all files or none. Does not touch git's index.
   * @throws SESSION_CANNOT_APPLY when the files have changed meanwhile; SESSION_WORKSPACE_FAILED when the
   * disk fails
   */
  write(): Promise<void>;
}

/**
 * Plans applying the recorded patches of a child's worktree to the files of its repository, or of `dir`.
 * Merges each patch that is not applied yet with later changes, as `git apply --3way` does. Changes nothing.
 * @throws SESSION_CANNOT_APPLY, with the files; SESSION_NO_WORKSPACE when the child was forked without a
 * worktree; SESSION_NO_REPOSITORY, SESSION_NO_GIT, SESSION_WORKSPACE_FAILED
 */
export async function planApplication(
  place: WorkspacePlace,
  child: Ref,
  { dir }: { readonly dir?: string } = {},
): Promise<Application> {
  const notes = await readNotes(place.store, child);
  if (notes === undefined)
    throw new SessionError(
      'SESSION_NO_WORKSPACE',
      `cannot apply '${child}': it was forked without a worktree`,
      {
        data: { session: child },
      },
    );
  const doing = `apply '${notes.child.session}'`;
  const into = await findRepository(dir ?? notes.worktree.repository, doing);
  const patches = patchesOf(notes);
  const nothing = { dir: into.top, files: [], write: async () => {} };
  if (patches.length === 0) return { ...nothing, state: 'empty' };
  const without = place.home === undefined ? undefined : await realpath(place.home);
  const options = { doing, keep: false, ...(without !== undefined && { without }) };
  return await withSnapshot(into, options, async ({ tree, call, dir: temp }) => {
    const files = await Promise.all(
      patches.map(async (artifact, i) => {
        const file = join(temp, `${i}.patch`);
        const bytes = await place.store.entries.blob(artifact.blob);
        await onDisk(doing, () => writeFile(file, bytes));
        return { file, artifact };
      }),
    );
    await applyMissing(call, files, { session: notes.child.session, into });
    const result = await gitLine(call, 'write-tree');
    if (result === tree) return { ...nothing, state: 'already' };
    const form = ['--binary', '--full-index', '--no-ext-diff', '--no-textconv', '--no-color', '--no-renames'];
    const change: Change = {
      patch: await git(call, 'diff-tree', '-p', '-r', ...form, tree, result),
      files: pathsIn(await git(call, 'diff-tree', '-r', '-z', '--name-only', '--no-renames', tree, result)),
      session: notes.child.session,
      doing,
    };
    const file = join(temp, 'change');
    await onDisk(doing, () => writeFile(file, change.patch));
    await assertFits(into, { ...change, file });
    return {
      state: 'ready',
      dir: into.top,
      files: change.files,
      write: async () => await writeFiles(into, change),
    };
  });
}

interface PatchInFile {
  readonly file: string;
  readonly artifact: Artifact;
}

/**
 * Applies to the index of a snapshot the patches that it lacks. The patches build on each other: if one can
 * be reversed, it was applied, and so were those before it.
 */
async function applyMissing(
  call: GitCall,
  patches: readonly PatchInFile[],
  { session, into }: { session: string; into: Repository },
): Promise<void> {
  let from = patches.length;
  for (; from > 0; from -= 1) {
    const { file } = patches[from - 1] ?? { file: '' };
    if ((await tryGit(call, ['apply', '--cached', '--check', '--reverse', '--', file])).ok) break;
  }
  for (const { file, artifact } of patches.slice(from)) {
    const { ok, stderr } = await tryGit(call, ['apply', '--cached', '--3way', '--', file]);
    if (ok) continue;
    const stages = pathsIn(await git(call, 'ls-files', '--unmerged', '-z'));
    const unmerged = [...new Set(stages.map((line) => line.replace(/^[^\t]*\t/, '')))];
    const named = unmerged.length > 0 ? unmerged : namedIn(stderr, patchPaths(artifact));
    throw cannotApply(session, { into: into.top, files: named, stderr });
  }
}

/** The change of a working tree's files. */
interface Change {
  readonly patch: Buffer;
  readonly files: readonly string[];
  readonly session: string;
  readonly doing: string;
}

type ChangeInFile = Omit<Change, 'patch'> & { readonly file: string };

/** Checks that a change applies to the present files. @throws SESSION_CANNOT_APPLY */
async function assertFits(into: Repository, { file, files, session, doing }: ChangeInFile): Promise<void> {
  const { ok, stderr } = await tryGit(callIn(into, doing), ['apply', '--check', '--', file]);
  if (ok) return;
  throw cannotApply(session, { into: into.top, files: namedIn(stderr, files), stderr });
}

/**
 * Changes all files or none: git checks all of them before it writes the first, and a later failure restores
 * them.
 */
async function writeFiles(into: Repository, { patch, ...change }: Change): Promise<void> {
  const { doing } = change;
  const dir = await onDisk(doing, () => mkdtemp(join(tmpdir(), 'tapedeck-apply-')));
  try {
    const file = join(dir, 'patch');
    await onDisk(doing, () => writeFile(file, patch));
    await assertFits(into, { ...change, file });
    const restore = await onDisk(doing, () => setAside(into.top, change.files, dir));
    try {
      await git(callIn(into, doing), 'apply', '--', file);
    } catch (error) {
      await onDisk(`restore the files from before '${change.session}'`, restore);
      throw error;
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** The paths that git's output names as conflicting; all paths if it names none of them. Pure. */
function namedIn(stderr: string, paths: readonly string[]): readonly string[] {
  const lines = stderr.split('; ');
  const isNamed = (path: string) =>
    lines.some(
      (line) => line.startsWith(`${path}: `) || line.includes(`: ${path}:`) || line.includes(`'${path}'`),
    );
  const named = paths.filter(isNamed);
  return named.length > 0 ? named : paths;
}

function cannotApply(
  session: string,
  { into, files, stderr }: { into: string; files: readonly string[]; stderr: string },
): SessionError {
  const shown = files.slice(0, 10).join(', ');
  const more = files.length > 10 ? ` and ${files.length - 10} more` : '';
  return new SessionError(
    'SESSION_CANNOT_APPLY',
    `cannot apply '${session}' to '${into}': it conflicts with the present content of ${shown}${more}`,
    { data: { session, dir: into, files: [...files], git: stderr } },
  );
}

function pathsIn(listed: Buffer): readonly string[] {
  return listed
    .toString('utf8')
    .split('\0')
    .filter((path) => path !== '');
}
