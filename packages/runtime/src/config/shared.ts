import type { Secret, TapeStore } from '@tapedeck/tape';
import type { Redactor } from '@tapedeck/tape/internal';
import type { ChunkWriter } from '../stream/chunk-writer.ts';
import type { RawTraffic } from '../traffic/traffic.ts';
import type { DeckConfig } from './config.ts';

/** Shared by all operations of a deck. */
export interface Shared {
  readonly store: TapeStore;
  /** The directory of the home; undefined for a deck on a store alone. */
  readonly home: string | undefined;
  readonly config: DeckConfig;
  /** Where the configured model comes from, for errors; undefined: from the program. */
  readonly modelFrom: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Secrets that are neither written nor published. */
  readonly secrets: readonly Secret[];
  /** Replaces what has the form of a secret; undefined when the configuration turns that off. */
  readonly redactor: Redactor | undefined;
  readonly cwd: string | undefined;
  /** Keeps the raw traffic of sessions; undefined when the configuration turns that off. */
  readonly traffic: RawTraffic | undefined;
  readonly newId: () => string;
  readonly now: () => number;
  /** Saves the chunks of live answers. */
  readonly chunks: ChunkWriter;
  /** Queues model calls by provider, within `limits.concurrentCalls`. */
  readonly calling: (provider: string | undefined) => <T>(call: () => Promise<T>) => Promise<T>;
}
