import type { HomeStore, SqliteTapeStore } from '@tapedeck/tape';
import type { Adopted, AdoptOptions, BundleOptions } from '@tapedeck/tape/store';

/** The text of a bundle. */
export function bundleOf(store: Pick<HomeStore, 'bundles'>, ref: string, o: BundleOptions = {}): string {
  return [...store.bundles.write(ref, { secrets: [], ...o })].join('');
}

/** Takes a text, or bytes, in as a bundle. */
export async function adopt(
  store: Pick<HomeStore, 'bundles'>,
  bundle: string | Uint8Array,
  o: AdoptOptions = {},
): Promise<Adopted> {
  return await store.bundles.adopt({ name: 'a.tape', chunks: [Buffer.from(bundle)] }, o);
}

/** What of a session is the same wherever it lands. How many messages it had is not known once one was redacted. */
export function faceOf(store: SqliteTapeStore, ref: string): object | undefined {
  const info = store.sessions.find(ref);
  if (info === undefined) return undefined;
  const { updatedAt: _updatedAt, mergedAt: _mergedAt, messageCount, ...same } = info;
  const isErased = [...store.entries.read(ref, { own: true })].some(({ payload }) => payload === null);
  return { ...same, ...(!isErased && { messageCount }), calls: store.sessions.calls({ session: ref }) };
}
