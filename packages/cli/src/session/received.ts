import {
  type HomeStore,
  type Json,
  parsePolicy,
  remakeOf,
  TapeError,
  type ViewPolicy,
  view as viewOf,
} from '@tapedeck/tape';
import { isObject, lastCallWithin, lastPolicy } from '@tapedeck/tape/internal';

/** The policy of the last model call up to a position. */
export function policyOfLastCall(store: HomeStore, id: string, to: number): ViewPolicy {
  return lastPolicy([...store.entries.read(id, { to, kind: 'message', last: lastCallWithin })]);
}

/**
 * The recorded manifest of the view that an answer was given to, and whether the tape still yields that view: not tried where
 * it has more than `most` entries.
 */
export function receivedManifest(
  store: HomeStore,
  id: string,
  at: number,
  most: number = Number.POSITIVE_INFINITY,
): Record<string, Json> | undefined {
  const [entry] = store.entries.read(id, { from: at, to: at });
  if (entry === undefined || !isObject(entry.meta.view)) return undefined;
  const { instructions_digest, tools_digest, view: manifest } = entry.meta;
  return {
    ...manifest,
    ...(instructions_digest !== undefined && { instructions_digest }),
    ...(tools_digest !== undefined && { tools_digest }),
    ...(entriesIn(manifest) <= most && reproduce(store, id, manifest)),
  };
}

/** How many entries a manifest has in its view. */
function entriesIn({ in: ranges }: Record<string, Json>): number {
  if (!Array.isArray(ranges)) return 0;
  return ranges.reduce<number>((count, range) => {
    const [from, to] = Array.isArray(range) ? range : [];
    return count + (typeof from === 'number' && typeof to === 'number' ? to - from + 1 : 0);
  }, 0);
}

/**
 * Whether the tape still yields the view of a manifest; `fault` gives the reason why it cannot be computed.
 */
function reproduce(store: HomeStore, id: string, manifest: Record<string, Json>): Record<string, Json> {
  try {
    // A tape may come from another version or program, with unknown policies.
    if (typeof manifest.policy === 'string') parsePolicy(manifest.policy);
    const again = remakeOf(manifest);
    if (again === undefined) return { same: false };
    const { policy, at } = again;
    return { same: viewOf(store.views.entries(id, { policy, at }), again).digest === manifest.digest };
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
    return { same: false, fault: { code: error.code, message: error.message } };
  }
}
