/** Worktrees of children: all of it that needs no model, for whoever forks and merges without one. */
export { type Application, planApplication } from './workspace-apply.ts';
export { closeWorktree } from './workspace-close.ts';
export { diffOf, type Patch } from './workspace-diff.ts';
export type { WorkspacePlace } from './workspace-notes.ts';
export { openWorktree, type WorkspaceOptions, withWorktree, workspaceOf } from './workspace-open.ts';
export { type KeptWorktree, releaseWorktree } from './workspace-release.ts';
