import type { TapeStore } from '@tapedeck/tape';
import type { ChunkWriter } from '../stream/chunk-writer.ts';
import type { DeckConfig } from './config.ts';

/** What every act of a deck works with. */
export interface Shared {
  readonly store: TapeStore;
  /** The directory of the home, if there is one. */
  readonly home: string | undefined;
  readonly config: DeckConfig;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string | undefined;
  readonly newId: () => string;
  readonly now: () => number;
  /** Saves live answers. */
  readonly chunks: ChunkWriter;
  /** How model calls of a provider are made: no more at once than the deck allows. */
  readonly calling: (provider: string | undefined) => <T>(call: () => Promise<T>) => Promise<T>;
}
