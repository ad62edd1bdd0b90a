import { type HomeStore, TapeError } from '@tapedeck/tape';
import { refusalOf } from '../imported/forgotten.ts';
import { ImportError } from '../lines/errors.ts';
import type { Writing } from './writing.ts';

/** How often a session is read anew after another writer was faster. */
export const triesMax = 10;

/** Whether another import was faster: a key that it used meanwhile is noticed before the head. */
export function isOvertaken(error: unknown): boolean {
  return isCode(error, 'TAPE_STALE_HEAD') || isCode(error, 'TAPE_KEY_CONFLICT');
}

/**
 * Asked before each writing: a source can be forgotten while an import reads it. A session that is forgotten behind the head
 * that was read of it has another head.
 * @throws IMPORT_FORGOTTEN
 */
export function assertNotForgotten(store: HomeStore, { plan, as, origins }: Writing): void {
  const forgotten = refusalOf(store, plan, { as, origins });
  if (forgotten !== undefined) throw forgotten.refused;
}

export function isForgotten(error: unknown): error is ImportError {
  return error instanceof ImportError && error.code === 'IMPORT_FORGOTTEN';
}

export function isCode(error: unknown, code: TapeError['code']): error is TapeError {
  return error instanceof TapeError && error.code === code;
}
