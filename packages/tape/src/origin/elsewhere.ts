/**
 * Where a home comes from. `elsewhere.ts` marks what was written before the home came to this user and machine, and
 * `home-record.ts` keeps those marks outside of the home, in the directory of `state-directory.ts`. `home-claim.ts` says
 * there which process is about to write such a record. Imports `owner`, `errors` and `crash-point`.
 */
import { TapeError } from '../errors.ts';

/**
 * What a home contained when it came here: the greatest row ids of its entries and inbox items. SQLite gives every later
 * row a greater id, unless the greatest possible one is taken: then later rows count as written elsewhere, too.
 */
export interface Elsewhere {
  readonly entries: number;
  readonly inbox: number;
}

/** A home that began here. */
export const nothingElsewhere: Elsewhere = { entries: 0, inbox: 0 };

/**
 * Checks the marks that a program passes.
 * @throws TAPE_BAD_OPTION
 */
export function getElsewhere(marks: Elsewhere): Elsewhere {
  if ([marks?.entries, marks?.inbox].every(Number.isInteger)) return marks;
  throw new TapeError('TAPE_BAD_OPTION', 'cannot open: trust must be true, false or the marks of a home', {
    data: { field: 'trust' },
  });
}
