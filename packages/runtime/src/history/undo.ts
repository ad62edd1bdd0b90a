import {
  type Entry,
  type Point,
  type Rewound,
  type Seq,
  type SessionInfo,
  TapeError,
  type TapeStore,
} from '@tapedeck/tape';
import { isObject, isPrune, select } from '@tapedeck/tape/internal';
import { SessionError } from '../errors.ts';
import { getActive } from '../lease/get-active.ts';
import { withLease } from './rewind.ts';

/** What `undo` reverts. An earlier undo is a rewind. */
export type UndoneAct = 'rewind' | 'compaction' | 'prune';

/** The receipt of an undo: that of the rewind which does it. */
export interface Undone extends Rewound {
  /** Position of the entry that was undone. */
  readonly undone: Seq;
  readonly act: UndoneAct;
}

/** Which act to undo. Default: the newest. */
export interface UndoOptions {
  /** The position of a rewind, a summary or a pruning. */
  readonly at?: Point | undefined;
  /** The newest rewind, or the newest summary or pruning. Has no effect with `at`. */
  readonly only?: 'rewind' | 'compaction' | undefined;
}

/**
 * Undoes the newest rewind, summary or pruning of a session, by a rewind to right before it: the view is then
 * what it was before the act. A second call undoes the first. An undone rewind hides the entries that were
 * added since; it calls no hook, because no snapshot exists of the files at that point. Only events may follow
 * a summary or a pruning.
 * @throws SESSION_BUSY; TAPE_ARCHIVED; SESSION_CANNOT_UNDO when the session has none of them, or when other
 *   entries follow the summary or pruning (`data.after` is the first of them); TAPE_BAD_POINT when the entry at
 *   `at` is not one of them, or is hidden; the errors of `store.resolve`
 *
 * @example
 * ```ts
 * import { openDeck, undoSession } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * const { from } = await main.run('Plan the release.');
 * await main.rewind(from);
 * console.log((await undoSession(deck.store, 'main')).act); // rewind
 * console.log((await main.view()).messages.length); // 2
 * ```
 */
export async function undoSession(
  store: TapeStore,
  ref: string,
  { at, only }: UndoOptions = {},
): Promise<Undone> {
  const { id } = await getActive(store, ref, 'undo');
  const seq = at === undefined ? undefined : await store.entries.resolve(id, at);
  return await withLease(store, id, {
    act: 'undo',
    does: async ({ lease }, info) => {
      const entry =
        seq === undefined ? await getNewest(store, info, only) : await getUndoable(store, info, seq);
      const act = actOf(entry);
      if (act === 'rewind') {
        const done = await store.history.unrewind(id, { lease, rewind: entry.seq });
        return { ...done, undone: entry.seq, act };
      }
      await assertLast(store, info, entry);
      const done = await store.history.rewind(id, entry.seq - 1, { lease, mode: 'uncompact' });
      return { ...done, undone: entry.seq, act };
    },
  });
}

function actOf(entry: Entry): UndoneAct {
  return entry.kind === 'rewind' ? 'rewind' : isPrune(entry) ? 'prune' : 'compaction';
}

/** The newest entry that can be undone: an own rewind, or a visible summary or pruning. */
async function getNewest(
  store: TapeStore,
  { id, session: name }: SessionInfo,
  only: UndoOptions['only'],
): Promise<Entry> {
  const rewinds =
    only === 'compaction'
      ? []
      : await Array.fromAsync(store.entries.read(id, { kind: 'rewind', own: true, last: 1 }));
  const compactions = only === 'rewind' ? [] : await newestCompactions(store, id);
  const [newest] = [...rewinds, ...compactions].toSorted((a, b) => b.seq - a.seq);
  if (newest !== undefined) return newest;
  const what = {
    all: 'it has no rewind, and its view has no summary and no pruned outputs',
    rewind: 'it has no rewind',
    compaction: 'its view has no summary and no pruned outputs',
  }[only ?? 'all'];
  throw new SessionError('SESSION_CANNOT_UNDO', `cannot undo '${name}': ${what}`, {
    data: { session: name },
  });
}

/** The last summary and the last pruning of the newest visible part that has one. */
async function newestCompactions(store: TapeStore, id: string): Promise<readonly Entry[]> {
  for (const { from, to, hiddenBy } of (await store.views.ranges(id)).toReversed()) {
    if (hiddenBy !== undefined) continue;
    const range = { from, to, last: 1 };
    const found = [
      ...(await Array.fromAsync(store.entries.read(id, { ...range, kind: 'compaction' }))),
      ...(await Array.fromAsync(store.entries.read(id, { ...range, kind: 'event', name: 'context/pruned' }))),
    ];
    if (found.length > 0) return found;
  }
  return [];
}

/** The entry at a position, if it can be undone. */
async function getUndoable(store: TapeStore, { id, session: name }: SessionInfo, seq: Seq): Promise<Entry> {
  const [entry] = await Array.fromAsync(store.entries.read(id, { from: seq, to: seq }));
  const refuse = (why: string, data: object = {}) =>
    new TapeError('TAPE_BAD_POINT', `cannot undo ${name}@${seq}: ${why}`, {
      data: { session: name, seq, ...data },
    });
  if (entry?.kind === 'rewind' && !entry.inherited) return entry;
  if (entry === undefined || (entry.kind !== 'compaction' && !isPrune(entry)))
    throw refuse(`it is no rewind, summary or pruning of '${name}'`);
  const [range] = await store.views.ranges(id, { from: seq });
  const hidden = range?.hiddenBy;
  if (hidden !== undefined) throw refuse(`the rewind ${name}@${hidden} hides it`, { hidden });
  return entry;
}

/** Refuses to undo a summary or pruning that entries follow which the undo would hide. */
async function assertLast(store: TapeStore, { id, session: name }: SessionInfo, last: Entry): Promise<void> {
  const { start, entries } = select(await Array.fromAsync(store.views.entries(id)), 'last-boundary');
  const shown = [...(start === undefined ? [] : [start]), ...entries].toSorted((a, b) => a.seq - b.seq);
  const after = shown.find((entry) => entry.seq > last.seq && !stays(entry));
  if (after === undefined) return;
  const { seq, kind } = after;
  const before = shown.findLast((entry) => entry.seq < last.seq && !entry.inherited && isUserMessage(entry));
  const what = last.kind === 'compaction' ? 'the summary' : 'the pruning';
  throw new SessionError(
    'SESSION_CANNOT_UNDO',
    `cannot undo ${what} ${name}@${last.seq}: ${kind} ${name}@${seq} follows it`,
    {
      data: {
        session: name,
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
