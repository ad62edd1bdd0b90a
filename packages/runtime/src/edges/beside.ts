import { type Draft, type HomeStore, TapeError } from '@tapedeck/tape';
import { isRefusal } from './refusal.ts';

/**
 * Appends what an import says of a session beside its conversation. A session that is archived or in use takes it from a
 * later import, and is the error that is returned; what another import said first stands.
 */
export function appendBeside(
  store: HomeStore,
  session: string,
  drafts: readonly Draft[],
): TapeError | undefined {
  try {
    store.entries.append(session, drafts);
    return undefined;
  } catch (error) {
    if (isRefusal(error)) return error;
    if (error instanceof TapeError && error.code === 'TAPE_KEY_CONFLICT') return undefined;
    throw error;
  }
}
