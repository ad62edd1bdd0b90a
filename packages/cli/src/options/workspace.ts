import { resolve } from 'node:path';
import type { HomeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';

export interface WorkspaceArgs {
  readonly workspace?: string | undefined;
  readonly repository?: string | undefined;
}

/** The options of verbs that fork, for the workspace of a child. */
export const workspaceOptions = {
  workspace: {
    type: 'string',
    choices: ['shared', 'worktree'],
    describe: 'worktree: give the child a git worktree, uncommitted changes included (default: shared)',
  },
  repository: {
    type: 'string',
    takes: 'DIR',
    needs: 'workspace',
    describe:
      'Directory in the repository of the worktree (default: the worktree of the parent, else the working directory)',
  },
} as const;

/** Those options in the form of the runtime. */
export async function workspaceIn(
  { workspace, repository }: WorkspaceArgs,
  { io, home, store, parent }: Pick<Context, 'io' | 'home'> & { store: HomeStore; parent: string },
): Promise<{ readonly workspace?: 'worktree'; readonly repository?: string }> {
  if (workspace !== 'worktree') return {};
  if (repository !== undefined) return { workspace, repository: resolve(io.cwd, repository) };
  const { workspaceOf } = await import('@tapedeck/runtime/internal');
  return { workspace, repository: (await workspaceOf({ store, home: home.dir }, parent)) ?? io.cwd };
}
