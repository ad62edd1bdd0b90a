import type { SqliteTapeStore } from '@tapedeck/tape';
import type { Adopted, AdoptOptions, BundleOptions } from '@tapedeck/tape/store';

/** The text of a bundle. */
export function bundleOf(store: SqliteTapeStore, ref: string, o: BundleOptions = {}): string {
  return [...store.bundles.write(ref, { secrets: [], ...o })].join('');
}

/** Takes a text, or bytes, in as a bundle. */
export async function adopt(
  store: SqliteTapeStore,
  bundle: string | Uint8Array,
  o: AdoptOptions = {},
): Promise<Adopted> {
  return await store.bundles.adopt({ name: 'a.tape', chunks: [Buffer.from(bundle)] }, o);
}

/** What of a session must be the same wherever it lands. */
export function faceOf(store: SqliteTapeStore, ref: string): unknown {
  const info = store.sessions.find(ref);
  if (info === undefined) return undefined;
  const { updatedAt: _updatedAt, mergedAt: _mergedAt, ...same } = info;
  return { ...same, calls: store.sessions.calls({ session: ref }) };
}
