/** Worktrees of children: everything that needs no model. */
export { type Application, planApplication } from './apply.ts';
export { closeWorktree } from './close.ts';
export { diffOf, type Patch } from './diff.ts';
export type { WorkspacePlace } from './notes.ts';
export { openWorktree, type WorkspaceOptions, withWorktree, workspaceOf } from './open.ts';
export { type KeptWorktree, releaseWorktree } from './release.ts';
