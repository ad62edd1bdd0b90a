import type { Entry, Rewound, Seq, TapeStore } from '@tapedeck/tape';
import { isObject, isPrune, select } from '@tapedeck/tape/internal';
import { SessionError } from '../errors.ts';
import { getActive } from '../lease/get-active.ts';
import { withLease } from './rewind.ts';

/** The receipt of undoing a summary or a pruning: that of the rewind which does it. */
export interface Uncompacted extends Rewound {
  /** Position of the undone summary or pruning. */
  readonly undone: Seq;
}

/**
 * Undoes the last summary or pruning of a session, by a rewind to right before it; `unrewindSession` undoes
 * that. Only events may follow the summary or pruning: the rewind would hide other entries.
 * @throws SESSION_BUSY; TAPE_ARCHIVED; SESSION_CANNOT_UNDO when the view has neither, or other entries
 *   follow: `data.after` is the first of them
 */
export async function uncompactSession(store: TapeStore, ref: string): Promise<Uncompacted> {
  const { id } = await getActive(store, ref, 'compact');
  return await withLease(store, id, {
    act: 'compact',
    does: async ({ lease }, { name }) => {
      const entries = await Array.fromAsync(store.viewEntries(id));
      const undone = getUndoable(name, entries);
      const done = await store.rewind(id, undone - 1, { lease, mode: 'uncompact' });
      return { ...done, undone };
    },
  });
}

/** The position of the summary or pruning to undo. */
function getUndoable(session: string, all: readonly Entry[]): Seq {
  const { start, entries } = select(all, 'last-boundary');
  const shown = [...(start === undefined ? [] : [start]), ...entries].toSorted((a, b) => a.seq - b.seq);
  const last = shown.findLast((entry) => entry.kind === 'compaction' || isPrune(entry));
  if (last === undefined)
    throw new SessionError(
      'SESSION_CANNOT_UNDO',
      `cannot undo a compaction of '${session}': its view has no summary and no pruned outputs`,
      { data: { session } },
    );
  const after = shown.find((entry) => entry.seq > last.seq && !stays(entry));
  if (after === undefined) return last.seq;
  const { seq, kind } = after;
  const before = shown.findLast((entry) => entry.seq < last.seq && !entry.inherited && isUserMessage(entry));
  const what = last.kind === 'compaction' ? 'the summary' : 'the pruning';
  throw new SessionError(
    'SESSION_CANNOT_UNDO',
    `cannot undo ${what} ${session}@${last.seq}: ${kind} ${session}@${seq} follows it`,
    {
      data: {
        session,
        seq: last.seq,
        after: { seq, kind },
        ...(isUserMessage(after) ? { message: seq } : before !== undefined && { before: before.seq }),
      },
    },
  );
}

/**
 * Whether a rewind may pass an entry: events are not part of views, and a fork's first entries are never
 * hidden.
 */
function stays({ kind, name, inherited }: Entry): boolean {
  return kind === 'event' || (!inherited && (name === 'fork/start' || name === 'intention'));
}

function isUserMessage({ kind, payload, meta }: Entry): boolean {
  return kind === 'message' && isObject(payload) && payload.role === 'user' && meta.source !== 'merge';
}
