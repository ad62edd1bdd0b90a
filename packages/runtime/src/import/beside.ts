import { type Draft, type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import { isRefusal } from './refusal.ts';

/**
 * Appends what an import says of a session beside its conversation. A session that is archived or in use takes it from a
 * later import; what another import said first stands.
 */
export function appendBeside(store: SqliteTapeStore, session: string, drafts: readonly Draft[]): void {
  try {
    store.entries.append(session, drafts);
  } catch (error) {
    const isSaid = error instanceof TapeError && error.code === 'TAPE_KEY_CONFLICT';
    if (!isSaid && !isRefusal(error)) throw error;
  }
}
