import { join } from 'node:path';
import type { SourceTable } from '@tapedeck/runtime/import';
import type { Context } from '../context.ts';
import { type Home, hasDatabase } from '../home.ts';

/** What a home knows of transcripts. */
export async function knownSources({ dir }: Pick<Home, 'dir'>): Promise<SourceTable> {
  const { SourceTable } = await import('@tapedeck/runtime/import');
  return SourceTable.open(join(dir, 'sources.jsonl'));
}

/** What is said where the tapes are an older copy. */
export const tapesAreOlder = 'The tapes are older than what the home knows of transcripts';

/**
 * Drops what a home knows of transcripts if its tapes are older than that. Opens the home only if something is known.
 * @throws TapeError for a home that cannot be read
 */
export async function dropUnlessHere(
  table: SourceTable,
  { home, reading }: Pick<Context, 'home' | 'reading'>,
): Promise<boolean> {
  if (table.all.length === 0) return false;
  if (!hasDatabase(home)) return table.dropUnlessIn(undefined);
  return await reading(async (store) => table.dropUnlessIn(store));
}
