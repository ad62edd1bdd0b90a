                                               
import { isObject } from '../entry/json.js';
import { normalise } from '../entry/normalise.js';
import { TapeError } from '../errors.js';

/**
 * Normalises a batch and sets its keys. The prefix `u:` separates the keys of callers from those of the store.
 */
export function keyedDrafts(batch                  , key         )          {
  const given          = batch;
  if (!Array.isArray(given) || !given.every(isObject))
    throw new TapeError('TAPE_BAD_ENTRY', 'cannot append: the batch must be a list of entries');
  return batch.flatMap(normalise).map((draft, i) => {
    const own = draft.key ?? (key === undefined ? undefined : i === 0 ? key : `${key}#${i + 1}`);
    return own === undefined ? draft : { ...draft, key: `u:${own}` };
  });
}
