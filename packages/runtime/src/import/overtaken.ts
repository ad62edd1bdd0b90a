import { TapeError } from '@tapedeck/tape';

/** How often a session is read anew after another writer was faster. */
export const triesMax = 10;

/** Whether another import was faster: a key that it used meanwhile is noticed before the head. */
export function isOvertaken(error: unknown): boolean {
  return isCode(error, 'TAPE_STALE_HEAD') || isCode(error, 'TAPE_KEY_CONFLICT');
}

export function isCode(error: unknown, code: TapeError['code']): error is TapeError {
  return error instanceof TapeError && error.code === code;
}
