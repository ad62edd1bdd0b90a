import type { TapeStore } from '@tapedeck/tape';
import { blobHashes, restoreBlobs } from '@tapedeck/tape/store';

/** A value with the bytes of its files in place of their references; the same value if it has none. */
export async function restored<T>(store: Pick<TapeStore, 'entries'>, value: T): Promise<T> {
  const hashes = blobHashes(value);
  if (hashes.length === 0) return value;
  const bytes = new Map<string, Uint8Array>();
  for (const hash of hashes) bytes.set(hash, await store.entries.blob(hash));
  return restoreBlobs(value, (hash) => bytes.get(hash) ?? new Uint8Array()) as T;
}
