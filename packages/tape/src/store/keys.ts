import type { Draft } from '../entry/entry.ts';
import { normalise } from '../entry/normalise.ts';

/**
 * Normalises a batch and sets its keys. The prefix `u:` separates the keys of callers from those of the store.
 */
export function keyedDrafts(batch: readonly Draft[], key?: string): Draft[] {
  return batch.flatMap(normalise).map((draft, i) => {
    const own = draft.key ?? (key === undefined ? undefined : i === 0 ? key : `${key}#${i + 1}`);
    return own === undefined ? draft : { ...draft, key: `u:${own}` };
  });
}
