/**
 * What the other packages of this repository share with the store, as `@tapedeck/tape/internal`. No promise covers it:
 * names come, change and go in any release. Imports `store` and what lies below it.
 */
export { saveText } from './bundle/pack.ts';
export { isBundle } from './bundle/unpack.ts';
export type { Finding } from './check/doctor.ts';
export type { LooseEnds } from './check/loose-ends.ts';
export { stopsReading } from './check/problem.ts';
export { newIds, type Sources } from './clock.ts';
export { isAway, Patience } from './db/away.ts';
export { doingFirst, ToDoFirst } from './db/write-check.ts';
export { artifactOf, isObjectName, patchPaths, workspaceClosed } from './entry/artifact.ts';
export { type Call, callOf } from './entry/call.ts';
export { argumentsText, callText } from './entry/call-text.ts';
export { clientCalls } from './entry/client-calls.ts';
export { storedPayloads, storedTexts } from './entry/encode.ts';
export { importedEvent, originKey, saysSource } from './entry/import-source.ts';
export { isoTime } from './entry/iso-time.ts';
export { isJoining, joinableEnd } from './entry/joiner.ts';
export { isObject, jsonDepth, parseJson } from './entry/json.ts';
export { baseFault, isReservedAnchor, quote } from './entry/name.ts';
export { isWhere, recordedFields } from './entry/recorded.ts';
export { abortedWhy } from './entry/run-state.ts';
export { goneFileIn, sourceGoneEvent } from './entry/source-gone.ts';
export { leftOfSource } from './entry/source-time.ts';
export { titleEvent, titleLine } from './entry/title.ts';
export { recordedUsage, tokenCount, totalOf, type Usage } from './entry/usage.ts';
export { workerInstructions } from './fork/worker-instructions.ts';
export { actNames, actOf } from './history/act.ts';
export { assistantText } from './merge/answer.ts';
export { mergeCharsMax, mergedText } from './merge/block.ts';
export { emptyResult, resultRefused } from './merge/collect.ts';
export { claimHome, creatorOf } from './origin/home-claim.ts';
export {
  configIn,
  forgetHome,
  type HomeConsent,
  type HomeRecord,
  homeRecord,
  homeRecords,
  recordHome,
  recordLog,
} from './origin/home-record.ts';
export { placeFaults } from './origin/place-faults.ts';
export { stateDirectory } from './origin/state-directory.ts';
export { stateOf } from './owner.ts';
export { type Address, parseAddress } from './postgres/address.ts';
export { typed as serverError } from './postgres/errors.ts';
export { filePassword } from './postgres/password-file.ts';
export { type Mask, maskFor } from './secrets/mask.ts';
export { maskError } from './secrets/mask-error.ts';
export { MaskedText } from './secrets/masked-text.ts';
export { findSecrets, hints } from './secrets/patterns.ts';
export { RedactedText, withoutOpenEnd } from './secrets/redacted-text.ts';
export { type Redactor, redactFault, redactorFor } from './secrets/redactor.ts';
export { secretFault, secretNamePattern, secretsIn, secretsOf } from './secrets/secrets.ts';
export { makeDirectories } from './sqlite/directories.ts';
export { pause } from './sqlite/lock-wait.ts';
export { assertWritable, isHomeFile } from './sqlite/place.ts';
export { takeLock } from './sqlite/take-lock.ts';
export { copyOlder } from './store/backup.ts';
export { importOriginBy, importOriginIn } from './store/import-origin.ts';
export { maskedStore } from './store/masked-store.ts';
export type { OpenOptions } from './store/open.ts';
export { redactedCall, redactedDraft } from './store/redacted-call.ts';
export { deliveryOf, isSummarizer, originOf, summarizerKind, treeParentOf } from './tape/info.ts';
export { leftoverEntries } from './tape/leftovers.ts';
export { nextBatch, type OpenBatch } from './tape/open-calls.ts';
export { partialAnswer } from './tape/partial-answer.ts';
export { assertActive, assertKept, isDeleted, lifecycleWord } from './tape/tape.ts';
export type { ErasedEntry, HomeHead, WrittenSession } from './tape/written.ts';
export { authorOf } from './view/author.ts';
export { type Dialect, dialectOf } from './view/dialect.ts';
export { continueText, fitTo, noAnswer, noResult, noStart } from './view/fit.ts';
export { fitResult, isClientCall, legalCallId } from './view/fit-call.ts';
export { fitAssistantPart, fitUserPart } from './view/fit-part.ts';
export { lastCallWithin, lastPolicy } from './view/last-policy.ts';
export type { Manifest, Remake } from './view/manifest.ts';
export { isOmission, omit, omittedIn, omittedMessages } from './view/omitted.ts';
export {
  policyText,
  rulesOf,
  type ViewBase,
  type ViewRule,
  type ViewRules,
  type ViewWindow,
} from './view/policy.ts';
export { isPrune, type PrunedOutput, prunedOutputs } from './view/pruned.ts';
export { renderEntry, renderState } from './view/render.ts';
export { type Selection, select, viewVersions } from './view/select.ts';
export type { ViewEnd } from './view/stream.ts';
export { type CountTokens, entryTokens, estimateTokens, textTokens, usedSinceStep } from './view/tokens.ts';
export { legalToolName } from './view/tool-name.ts';
