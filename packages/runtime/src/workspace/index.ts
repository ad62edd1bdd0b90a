/**
 * Worktrees of children. `open.ts` makes one at the fork or at the first run, `close.ts` writes its patch on the
 * child's tape before a merge, `release.ts` removes it after, `apply.ts` brings patches to a working tree; `git.ts`
 * alone starts git. No file here needs a model, so that the command line forks and merges without the AI SDK. Imports
 * `lease`, `crash-point` and `errors`.
 */
export { type Application, planApplication } from './apply.ts';
export { closeWorktree } from './close.ts';
export { diffOf } from './diff.ts';
export { openWorktree, type WorkspaceOptions, withWorktree, workspaceOf } from './open.ts';
export { type KeptWorktree, releaseWorktree } from './release.ts';
