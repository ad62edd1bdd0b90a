import type { Db } from '../db/db.ts';
import { workspaceClosed } from '../entry/artifact.ts';
import type { Entry, Seq } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';
import { runNotes } from '../entry/run-state.ts';
import { hiddenBy } from '../tape/interval.ts';
import { readEntries } from '../tape/read.ts';
import type { TapeRow } from '../tape/tape.ts';
import { resultRefused } from './collect.ts';

/** Events that a merge has something to say of: how a run ended, that a result was refused, which files changed. */
const outcomes: ReadonlySet<string> = new Set([...runNotes, resultRefused, workspaceClosed]);

/**
 * Returns the position of the newest visible merge or discard of a child, if the child has done nothing between it and
 * `through`. What others left on its tape is nothing that a merge could deliver: an answer that came too late, a title, a
 * message that no run has taken up, the report of a child of its own.
 */
export function deliveredAt(
  db: Db,
  { child, into, through }: { readonly child: TapeRow; readonly into: TapeRow; readonly through: Seq },
): Seq | undefined {
  const merges = db.all<{ seq: Seq; last: Seq }>(
    `SELECT seq, to_seq AS last FROM lineage
       WHERE tape_id = @child AND type IN ('merge', 'discard') AND peer_id = @into ORDER BY g DESC`,
    { child: child.id, into: into.id },
  );
  const merge = merges.find(({ seq }) => hiddenBy(db, into, seq) === undefined);
  if (merge === undefined) return undefined;
  if (merge.last < through)
    for (const entry of readEntries(db, child, { from: merge.last + 1, to: through, own: true }))
      if (isWork(entry)) return undefined;
  return merge.seq;
}

function isWork({ kind, name = '', payload }: Entry): boolean {
  if (kind === 'message') return isObject(payload) && payload.role === 'assistant';
  return kind === 'tool-result' || kind === 'result' || (kind === 'event' && outcomes.has(name));
}
