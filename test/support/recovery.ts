import type { Deck, RecoverOptions, RecoveryReport } from '@tapedeck/runtime';

/** Recovers, and returns the names of the report without its account of each session. */
export async function recovered(
  deck: Deck,
  options?: string | RecoverOptions,
): Promise<Omit<RecoveryReport, 'sessions'>> {
  const { sessions: _, ...names } = await deck.recover(options);
  return names;
}
