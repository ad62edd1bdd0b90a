/**
 * Entry point for tests of programs: models that answer from a script, and the points at which a test can stop a run
 * as a crash would.
 *
 * @module @tapedeck/runtime/testing
 */
export {
  delegationPoints,
  onCrashPoint,
  type RunPoint,
  runPoints,
  workspacePoints,
} from './crash-point.ts';
export {
  parseScript,
  readScript,
  type ScriptAnswer,
  type ScriptContext,
  scriptModel,
} from './model/script.ts';
