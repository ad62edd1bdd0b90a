import type { Draft } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';
import { normalise } from '../entry/normalise.ts';
import { TapeError } from '../errors.ts';

/**
 * Normalises a batch and sets its keys. The prefix `u:` separates the keys of callers from those of the store.
 */
export function keyedDrafts(batch: readonly Draft[], key?: string): Draft[] {
  const given: unknown = batch;
  if (!Array.isArray(given) || !given.every(isObject))
    throw new TapeError('TAPE_BAD_ENTRY', 'cannot append: the batch must be a list of entries');
  return batch.flatMap(normalise).map((draft, i) => {
    const own = draft.key ?? (key === undefined ? undefined : i === 0 ? key : `${key}#${i + 1}`);
    return own === undefined ? draft : { ...draft, key: `u:${own}` };
  });
}
