import { TapeError } from '@tapedeck/tape';

/** Why a session takes nothing of an import, at least for now: what its user did to it, or another process that has it. */
const refusals: ReadonlySet<string> = new Set(['TAPE_ARCHIVED', 'TAPE_BUSY']);

/** Whether an error says that one session takes nothing, which keeps no other from it. */
export function isRefusal(error: unknown): error is TapeError {
  return error instanceof TapeError && refusals.has(error.code);
}
