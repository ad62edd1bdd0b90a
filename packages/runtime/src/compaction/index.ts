export { type Cut, cutPoint, validCuts } from './cut-point.ts';
export { fileSets, fileTags, withoutFileTags } from './file-sets.ts';
export { type CompactionPlan, planCompaction } from './plan.ts';
export {
  type CompactionPolicy,
  isToBePruned,
  isTooFull,
  resolvePolicy,
  usableOf,
} from './policy.ts';
export { outputsToPrune } from './prune-outputs.ts';
export { missingSections, summarizerInstructions, summaryPrompt, summarySections } from './summary-prompt.ts';
export { transcriptOf, withoutMiddle } from './transcript.ts';
