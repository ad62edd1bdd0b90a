/**
 * Compaction: a summary takes the place of the older part of a view, or large outputs leave it. `policy.ts` says when,
 * `plan.ts` and `cut-point.ts` say what goes (pure), `summarize.ts` has the summary written, `compact.ts` appends it,
 * `prune-outputs.ts` chooses outputs. `context.ts` is all that these files know of the run. This file is what
 * `@tapedeck/runtime/internal` gives: the pure part. Imports `tools`, `model`, `stream`, `usage` and `errors`.
 */
export { type CutPoint, cutPoint, validCuts } from './cut-point.ts';
export { fileSets, fileTags, withoutFileTags } from './file-sets.ts';
export { planCompaction } from './plan.ts';
export {
  isToBePruned,
  isTooFull,
  resolvePolicy,
  usableOf,
} from './policy.ts';
export { outputsToPrune } from './prune-outputs.ts';
export { missingSections, summaryPrompt, summarySections } from './summary-prompt.ts';
export { transcriptOf, withoutMiddle } from './transcript.ts';
