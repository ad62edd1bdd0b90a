import { resolve } from 'node:path';
import type { SqliteTapeStore } from '@tapedeck/tape';
import type { Argv } from 'yargs';
import type { Context } from '../context.ts';

export interface WorkspaceArgs {
  readonly workspace?: string | undefined;
  readonly repository?: string | undefined;
}

/** The options of verbs that fork: where their children work. */
export function workspaceOptions<T>(y: Argv<T>): Argv<T & WorkspaceArgs> {
  return y
    .option('workspace', {
      type: 'string',
      choices: ['shared', 'worktree'],
      requiresArg: true,
      describe: 'worktree: a git worktree of its own, with what is not committed too (default: shared)',
    })
    .option('repository', {
      type: 'string',
      requiresArg: true,
      implies: 'workspace',
      describe: "A directory of the worktree's repository (default: the parent's worktree, else this one)",
    }) as Argv<T & WorkspaceArgs>;
}

/** What those options ask for, as the runtime takes it. */
export async function workspaceIn(
  { workspace, repository }: WorkspaceArgs,
  { io, home, store, parent }: Pick<Context, 'io' | 'home'> & { store: SqliteTapeStore; parent: string },
): Promise<{ readonly workspace?: 'worktree'; readonly repository?: string }> {
  if (workspace !== 'worktree') return {};
  if (repository !== undefined) return { workspace, repository: resolve(io.cwd, repository) };
  const { workspaceOf } = await import('@tapedeck/runtime/workspace');
  return { workspace, repository: (await workspaceOf({ store, home: home.dir }, parent)) ?? io.cwd };
}
