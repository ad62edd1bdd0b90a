import { verifyAliases } from '../check/aliases.ts';
import { BesideTapes } from '../check/beside.ts';
import { verifyLines } from '../check/lineage.ts';
import { verifyMergedHeads, verifyMerges } from '../check/merges.ts';
import type { Problem } from '../check/problem.ts';
import { verifyRow } from '../check/row.ts';
import { verifyTape } from '../check/verify.ts';
import { ViewsOnTape, verifyViews } from '../check/views.ts';
import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { TapeError } from '../errors.ts';
import { type TapeRow, tapeById } from '../tape/tape.ts';
import { badBundle } from './bundle.ts';
import type { Planned } from './plan.ts';
import { entriesFrom, type Place } from './records.ts';
import type { Scanned } from './scan.ts';

/**
 * Verifies what a bundle added, by the rules of `verify`: of a session that was here, the new entries, and what is
 * recorded of it.
 * @throws TAPE_BAD_BUNDLE at the line of the first damage
 */
export function proveTapes(
  db: Db,
  scanned: Scanned,
  {
    adopted,
    saw,
  }: {
    readonly adopted: readonly { readonly plan: Planned; readonly id: number; readonly entries: number }[];
    /** Called for each entry that is verified. */
    readonly saw: () => void;
  },
): void {
  for (const { plan, id, entries } of adopted) {
    if (plan.isKept) continue;
    const from = plan.isNew || plan.filled > 0 ? undefined : plan.common + 1;
    try {
      for (const problem of problemsIn(db, tapeById(db, id), { from, isGrown: entries > 0, saw }))
        if (problem.code !== 'not-here') throw refused(scanned, plan, problem);
    } catch (cause) {
      if (!(cause instanceof TapeError) || cause.code !== 'TAPE_CORRUPT') throw cause;
      throw badBundle(scanned.file.name, plan.bundled.at.number, cause.message, { cause });
    }
  }
}

function* problemsIn(
  db: Db,
  tape: TapeRow,
  {
    from,
    isGrown,
    saw,
  }: { readonly from: Seq | undefined; readonly isGrown: boolean; readonly saw: () => void },
): Generator<Problem> {
  const tapes = new BesideTapes(db, { first: tape.id, last: tape.id });
  const views = new ViewsOnTape();
  if (from === undefined || isGrown)
    yield* verifyTape(db, tape, { tapes, watchers: [views, { saw }], ...(from !== undefined && { from }) });
  yield* verifyRow(db, tape, tapes);
  yield* verifyAliases(tape, tapes.of(tape.id));
  yield* verifyLines(tape, tapes.of(tape.id));
  yield* verifyMerges(db, tape, { tapes });
  yield* verifyMergedHeads(db, tape, tapes);
  yield* verifyViews(db, tape, views);
}

/** The error of a damage, at the line of its entry. */
function refused({ file }: Scanned, { bundled }: Planned, { seq, message }: Problem): TapeError {
  return badBundle(file.name, lineOf(file, bundled, seq)?.number ?? bundled.at.number, message);
}

function lineOf(
  file: Scanned['file'],
  { start, from, at }: Planned['bundled'],
  seq: Seq | null,
): Place | undefined {
  if (seq === null) return at;
  for (const one of entriesFrom(file, { from, after: start.after })) if (one.entry.seq === seq) return one.at;
  return at;
}
