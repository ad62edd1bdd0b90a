import {
  type Entry,
  isObject,
  isPrune,
  type Rewound,
  type Seq,
  select,
  type TapeStore,
} from '@tapedeck/tape';
import { SessionError } from '../errors.ts';
import { getActive } from '../lease/get-active.ts';
import { withLease } from './rewind.ts';

/** The receipt of taking a summary or a pruning back: that of the rewind which does it. */
export interface Uncompacted extends Rewound {
  /** Position of what was taken back. */
  readonly undone: Seq;
}

/**
 * Takes back the last summary of a session, or the last pruning: what it stood for is seen again. It is a rewind to right before
 * it, and taken back as one. Nothing but events may have come after it: of what was said since, somebody has to say that it is to go.
 * @throws SESSION_BUSY; TAPE_ARCHIVED; SESSION_CANNOT_UNDO when there is none in view, or something came after it: `data.after` is the
 *   first such entry
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

/** The position of what can be taken back. */
function getUndoable(session: string, all: readonly Entry[]): Seq {
  const { start, entries } = select(all, 'last-boundary');
  const shown = [...(start === undefined ? [] : [start]), ...entries].toSorted((a, b) => a.seq - b.seq);
  const last = shown.findLast((entry) => entry.kind === 'compaction' || isPrune(entry));
  if (last === undefined)
    throw new SessionError(
      'SESSION_CANNOT_UNDO',
      `cannot take back a summary of '${session}': its view begins with none, and no outputs are left out of it`,
      { data: { session } },
    );
  const after = shown.find((entry) => entry.seq > last.seq && !stays(entry));
  if (after === undefined) return last.seq;
  const { seq, kind } = after;
  const before = shown.findLast((entry) => entry.seq < last.seq && !entry.inherited && isUserMessage(entry));
  const what = last.kind === 'compaction' ? 'the summary' : 'the pruning';
  throw new SessionError(
    'SESSION_CANNOT_UNDO',
    `cannot take back ${what} ${session}@${last.seq}: ${kind} ${session}@${seq} came after it`,
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

/** Whether nothing is lost when a rewind passes an entry: it says nothing to anybody, or no rewind hides it. */
function stays({ kind, name, inherited }: Entry): boolean {
  return kind === 'event' || (!inherited && (name === 'fork/start' || name === 'intention'));
}

function isUserMessage({ kind, payload, meta }: Entry): boolean {
  return kind === 'message' && isObject(payload) && payload.role === 'user' && meta.source !== 'merge';
}
