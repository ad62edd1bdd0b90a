import type { Draft, Entry, JsonObject } from '@tapedeck/tape';
import { normalise } from '@tapedeck/tape/store';

/** Entries as a store would give them for these drafts, on a tape of their own; for rules that need no store. */
export function entriesOf(drafts: readonly Draft[]): Entry[] {
  return drafts.flatMap(normalise).map(({ kind, mark, name, ref, payload, meta }, i) => ({
    session: 'main',
    tape: 'tape:main',
    seq: i + 1,
    kind,
    ...(mark !== undefined && { mark }),
    ...(name !== undefined && { name }),
    ...(ref !== undefined && { ref }),
    payload: payload as JsonObject,
    meta: meta ?? {},
    at: 0,
    hash: '',
    inherited: false,
  }));
}
