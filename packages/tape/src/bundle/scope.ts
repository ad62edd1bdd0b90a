import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { hex } from '../entry/hash.ts';
import type { Interval } from '../tape/interval.ts';
import { selectTape, type TapeRow } from '../tape/tape.ts';
import { belowInTree } from '../tape/tree.ts';
import type { BundleScope, BundleStart, BundleTape } from './bundle.ts';

/** A session that travels. */
export interface Travelling {
  readonly tape: TapeRow;
  /** The positions of its own entries whose content travels, too: `(lo, hi]`. */
  readonly shown: Interval;
  /** What its first entry follows, and its last one. */
  readonly start: BundleStart;
  readonly end: Pick<BundleTape, 'head' | 'head_hash'>;
}

/**
 * Chooses the sessions of a bundle, parents first. Of an ancestor travels with `session` only what the session reads,
 * and else everything.
 */
export function travelling(db: Db, tape: TapeRow, scope: BundleScope): readonly Travelling[] {
  const above = ancestorsOf(db, tape);
  if (scope === 'tree') return familyOf(db, [tape, ...descendantsOf(db, tape)]).map((one) => whole(one));
  return [
    ...above.map(({ tape: ancestor, reach }) =>
      whole(ancestor, scope === 'session' ? { lo: tape.floor_seq, hi: reach } : undefined),
    ),
    whole(tape),
  ];
}

/** Sessions with all those that they inherit from, which need not be above them in the tree, in the order of their creation. */
function familyOf(db: Db, tapes: readonly TapeRow[]): readonly TapeRow[] {
  const all = new Map(tapes.map((tape) => [tape.id, tape]));
  for (const one of tapes)
    if (one.parent_id !== null && !all.has(one.parent_id))
      for (const { tape } of ancestorsOf(db, one)) all.set(tape.id, tape);
  return [...all.values()].sort((a, b) => a.id - b.id);
}

function whole(tape: TapeRow, shown: Interval = { lo: 0, hi: tape.head_seq }): Travelling {
  return {
    tape,
    shown,
    start: { after: tape.base_seq, after_hash: hex(tape.base_hash) },
    end: { head: tape.head_seq, head_hash: hex(tape.head_hash) },
  };
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
    `${selectTape} WHERE t.id IN (${belowInTree('@id')}) AND t.lifecycle <> 'staging' ORDER BY t.id`,
    { id },
  );
}
