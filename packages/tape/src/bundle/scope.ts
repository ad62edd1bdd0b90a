import type { Seq } from '../entry/entry.ts';
import type { Db } from '../sqlite/sqlite.ts';
import type { Interval } from '../tape/interval.ts';
import { selectTape, type TapeRow } from '../tape/tape.ts';
import type { BundleScope } from './bundle.ts';

/** A session that travels, and the positions of its own entries whose content travels with it: `(lo, hi]`. */
export interface Travelling {
  readonly tape: TapeRow;
  readonly shown: Interval;
}

/**
 * Chooses the sessions of a bundle, parents first. Of an ancestor travels with `session` only what the session reads,
 * and else everything.
 */
export function travelling(db: Db, tape: TapeRow, scope: BundleScope): readonly Travelling[] {
  const above = ancestorsOf(db, tape);
  const below = scope === 'tree' ? descendantsOf(db, tape) : [];
  return [
    ...above.map(({ tape: ancestor, reach }) => ({
      tape: ancestor,
      shown: scope === 'session' ? { lo: tape.floor_seq, hi: reach } : { lo: 0, hi: ancestor.head_seq },
    })),
    ...[tape, ...below].map((one) => ({ tape: one, shown: { lo: 0, hi: one.head_seq } })),
  ];
}

/** The ancestors of a session, oldest first, each with the last position that the session shares with it. */
function ancestorsOf(db: Db, tape: TapeRow): readonly { readonly tape: TapeRow; readonly reach: Seq }[] {
  const above: { tape: TapeRow; reach: Seq }[] = [];
  let reach = tape.base_seq;
  for (let at = tape; at.parent_id !== null && at.parent_id < at.id; ) {
    const parent = db.get<TapeRow>(`${selectTape} WHERE t.id = @id`, { id: at.parent_id });
    if (parent === undefined) break;
    reach = Math.min(reach, at.base_seq);
    above.unshift({ tape: parent, reach });
    at = parent;
  }
  return above;
}

/** The descendants of a session in the order in which they were made, without imports that are not finished. */
function descendantsOf(db: Db, { id }: TapeRow): readonly TapeRow[] {
  return db.all<TapeRow>(
    `WITH RECURSIVE below(id) AS (
       SELECT id FROM tape WHERE parent_id = @id AND id > @id
       UNION SELECT c.id FROM below b JOIN tape c ON c.parent_id = b.id AND c.id > b.id)
     ${selectTape} WHERE t.id IN (SELECT id FROM below) AND t.lifecycle <> 'staging' ORDER BY t.id`,
    { id },
  );
}
