/**
 * What the other packages of this repository share with the store, as `@tapedeck/tape/internal`. No promise covers it:
 * names come, change and go in any release. Imports `store` and what lies below it.
 */
                                                 
                                                       
                                          
export { artifactOf, isObjectName, patchPaths, workspaceClosed } from './entry/artifact.js';
export {            callOf } from './entry/call.js';
export { clientCalls } from './entry/client-calls.js';
export { isoTime } from './entry/iso-time.js';
export { isObject, jsonDepth, parseJson } from './entry/json.js';
export { isReservedAnchor, quote } from './entry/name.js';
export { abortedWhy } from './entry/run-state.js';
export { recordedUsage, tokenCount, totalOf,            } from './entry/usage.js';
export { workerInstructions } from './fork/worker-instructions.js';
export { assistantText } from './merge/answer.js';
export { mergeCharsMax, mergedText } from './merge/block.js';
export { emptyResult, resultRefused } from './merge/collect.js';
export {
  configIn,
  forgetHome,
                   
                  
  homeRecord,
  homeRecords,
  recordHome,
  recordLog,
} from './origin/home-record.js';
export { placeFaults } from './origin/place-faults.js';
export { stateDirectory } from './origin/state-directory.js';
export {            maskFor } from './secrets/mask.js';
export { maskError } from './secrets/mask-error.js';
export { MaskedText } from './secrets/masked-text.js';
export { secretFault, secretNamePattern, secretsIn, secretsOf } from './secrets/secrets.js';
export { pause } from './sqlite/lock-wait.js';
export { assertWritable, isHomeFile } from './sqlite/place.js';
export { copyOlder } from './store/backup.js';
export { maskedStore } from './store/masked-store.js';
                                                   
export { isSummarizer, summarizerKind } from './tape/info.js';
export { leftoverEntries } from './tape/leftovers.js';
export { partialAnswer } from './tape/partial-answer.js';
export { assertActive } from './tape/tape.js';
export { authorOf } from './view/author.js';
export { continueText, noAnswer, noResult, noStart } from './view/fit.js';
export { isClientCall } from './view/fit-call.js';
export { lastCallWithin, lastPolicy } from './view/last-policy.js';
                                                           
export {
  policyText,
  rulesOf,
                
                
                 
                  
} from './view/policy.js';
export { isPrune,                    prunedOutputs } from './view/pruned.js';
export { renderState } from './view/render.js';
export {                 select, viewVersion } from './view/select.js';
                                                
export {                   entryTokens, estimateTokens, textTokens, usedSinceStep } from './view/tokens.js';
export { legalToolName } from './view/tool-name.js';
