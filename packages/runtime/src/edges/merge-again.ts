import type { Entry, HomeStore, MergeRequest, Seq, SessionInfo } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { keyOf } from '../imported/keys.ts';
import { text } from '../plan/text.ts';
import { isMerged, lastMerge, mergeIfFree } from './merge-ended.ts';
import { receivedIn, showsCall } from './parent-session.ts';

/**
 * Merges those subagents of a session again whose merge a rewind of an import hid, though the session shows their results
 * still. Their files say nothing of it where this import lacks them, as it does where another copy of the transcript is read.
 */
export function mergeAgain(store: HomeStore, session: string): void {
  for (const child of store.sessions.list({ parent: session, all: true, deleted: false })) {
    if (child.kind !== 'subagent' || child.undone !== true || isMerged(store, child)) continue;
    const { into, seq, received } = lastMerge(store, child.id) ?? {};
    if (into !== child.parentId || into === undefined || seq === undefined) continue;
    const place = received === undefined ? undefined : placeNow(store, into, received);
    if (received === undefined ? !isCalled(store, child) : place === undefined) continue;
    const [before] = store.entries.read(into, { from: seq, to: seq });
    mergeIfFree(store, child.id, {
      ...{ context: false, into, ...termsOf(before) },
      ...(place !== undefined && { received: place }),
    });
  }
}

/** Where a session shows the result by now that it had at a position; undefined where it is hidden. */
function placeNow(store: HomeStore, session: string, before: Seq): Seq | undefined {
  const [result] = store.entries.read(session, { from: before, to: before });
  const place = result && receivedIn(store, session, { received: keyOf(result) });
  const [range] = place === undefined ? [] : store.views.ranges(session, { from: place });
  return range?.hiddenBy === undefined ? place : undefined;
}

/** Whether the session that got a subagent shows the call that started it, as one does whose result names no position. */
function isCalled(store: HomeStore, { parentId = '', spawnCall }: SessionInfo): boolean {
  return spawnCall !== undefined && showsCall(store, parentId, spawnCall);
}

/** How a subagent had ended, and when, by the mark of its merge. */
function termsOf(mark: Entry | undefined): Pick<MergeRequest, 'status' | 'timestamp'> {
  const { state } = isObject(mark?.payload) ? mark.payload : {};
  const failed = isObject(state) && state.status === 'failed';
  const timestamp = text(mark?.meta.timestamp);
  return { status: failed ? 'failed' : 'completed', ...(timestamp !== undefined && { timestamp }) };
}
