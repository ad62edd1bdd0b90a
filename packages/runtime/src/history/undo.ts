import {
  type Entry,
  type Point,
  type Rewound,
  type Seq,
  type SessionInfo,
  TapeError,
  type TapeStore,
} from '@tapedeck/tape';
import { actNames, actOf, importedEvent, isObject, select } from '@tapedeck/tape/internal';
import { SessionError } from '../errors.ts';
import { getActive } from '../lease/get-active.ts';
import { withLease } from './rewind.ts';

/** What `undo` reverts. An earlier undo is a rewind. */
export type UndoneAct = 'rewind' | 'compaction' | 'prune' | 'anchor' | 'handoff' | 'merge';

/** The receipt of an undo: that of the rewind which does it. */
export interface Undone extends Rewound {
  /** Position of the entry that was undone. */
  readonly undone: Seq;
  readonly act: UndoneAct;
}

/** Which act to undo. Default: the newest. */
export interface UndoOptions {
  /** The position of a rewind, a summary or a pruning, or of an own anchor, handoff or merge. */
  readonly at?: Point | undefined;
  /** The newest rewind, or the newest summary or pruning. Has no effect with `at`. */
  readonly only?: 'rewind' | 'compaction' | undefined;
}

/**
 * Undoes the newest act of a session, or the one at a point, by a rewind to right before it: the view is then what it was
 * before the act. Acts are rewinds, summaries, prunings, and anchors, handoffs and merges of its own. A second call undoes
 * the first. An older act is never undone in place of the newest one, which it could hide. An undone rewind hides the
 * messages that were added since; it calls no hook, because no snapshot exists of the files at that point. Only events may
 * follow another act. The child of an undone merge can be merged again.
 * @throws SESSION_BUSY; TAPE_ARCHIVED; SESSION_CANNOT_UNDO when the session has none of them, or when other
 *   entries follow what is no rewind (`data.after` is the first of them); TAPE_BAD_POINT when the entry at
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
      const last = seq === undefined ? await getNewest(store, info, only) : await getActAt(store, info, seq);
      const { act, seq: undone } = last;
      if (act === 'rewind')
        return { ...(await store.history.unrewind(id, { lease, rewind: undone })), undone, act };
      await assertLast(store, info, last);
      const mode = act === 'compaction' || act === 'prune' ? { mode: 'uncompact' } : {};
      return { ...(await store.history.rewind(id, undone - 1, { lease, ...mode })), undone, act };
    },
  });
}

/** An act that can be undone, and the position of its entry. */
export interface Act {
  readonly act: UndoneAct;
  readonly seq: Seq;
}

/** The act of an entry, if an undo can hide it: a rewind and an anchor are the session's own, and a discard stays. */
export function undoable(entry: Entry): Act | undefined {
  const { seq, inherited, payload } = entry;
  const act = actOf(entry);
  if (act === undefined) return undefined;
  if (act === 'compaction' || act === 'prune') return { act, seq };
  const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
  return inherited || (act === 'merge' && state.strategy === 'discard') ? undefined : { act, seq };
}

/** The newest act of a session, which an undo reverts if it can: an own rewind, or another one that is visible. */
export async function newestAct(
  store: TapeStore,
  id: string,
  only?: UndoOptions['only'],
): Promise<Act | undefined> {
  const rewinds =
    only === 'compaction'
      ? []
      : await Array.fromAsync(store.entries.read(id, { kind: 'rewind', own: true, last: 1 }));
  const visible = only === 'rewind' ? [] : await newestVisible(store, id, only);
  const [newest] = [...rewinds, ...visible]
    .flatMap((entry) => undoable(entry) ?? [])
    .toSorted((a, b) => b.seq - a.seq);
  return newest;
}

/** The same; throws where there is no such act. */
async function getNewest(
  store: TapeStore,
  { id, session: name, title = '', aliases }: SessionInfo,
  only: UndoOptions['only'],
): Promise<Act> {
  const newest = await newestAct(store, id, only);
  if (newest !== undefined) return newest;
  const what = {
    all: 'it has no rewind, and its view has no summary, no pruned outputs, and no anchor, handoff or merge of its own',
    rewind: 'it has no rewind',
    compaction: 'its view has no summary and no pruned outputs',
  }[only ?? 'all'];
  const [source] =
    only === undefined
      ? await Array.fromAsync(store.entries.read(id, { name: importedEvent, own: true, last: 1 }))
      : [];
  throw new SessionError('SESSION_CANNOT_UNDO', `cannot undo '${name}': ${what}`, {
    data: {
      session: name,
      // What was done with it is no entry that a rewind could hide.
      ...(only === undefined && aliases.includes(title) && { renamed: title }),
      ...(source !== undefined && { imported: true }),
    },
  });
}

/** The last summary, pruning and other act of the newest visible part that has one. */
async function newestVisible(
  store: TapeStore,
  id: string,
  only: UndoOptions['only'],
): Promise<readonly Entry[]> {
  for (const { from, to, hiddenBy } of (await store.views.ranges(id)).toReversed()) {
    if (hiddenBy !== undefined) continue;
    const range = { from, to, last: 1 };
    const found = [
      ...(await Array.fromAsync(store.entries.read(id, { ...range, kind: 'compaction' }))),
      ...(await Array.fromAsync(store.entries.read(id, { ...range, kind: 'event', name: 'context/pruned' }))),
      ...(only === undefined ? await newestAnchor(store, id, { from, to }) : []),
    ];
    if (found.length > 0) return found;
  }
  return [];
}

/** The last anchor, handoff or merge of a range that an undo can hide. */
async function newestAnchor(
  store: TapeStore,
  id: string,
  { from, to }: { readonly from: Seq; readonly to: Seq },
): Promise<readonly Entry[]> {
  for (let last = to; last >= from; ) {
    const query = { from, to: last, kind: 'anchor', own: true, last: 1 } as const;
    const [entry] = await Array.fromAsync(store.entries.read(id, query));
    if (entry === undefined) return [];
    if (undoable(entry) !== undefined) return [entry];
    last = entry.seq - 1;
  }
  return [];
}

/** The act at a position, if it can be undone. */
async function getActAt(store: TapeStore, { id, session: name }: SessionInfo, seq: Seq): Promise<Act> {
  const [entry] = await Array.fromAsync(store.entries.read(id, { from: seq, to: seq }));
  const refuse = (why: string, data: object = {}) =>
    new TapeError('TAPE_BAD_POINT', `cannot undo ${name}@${seq}: ${why}`, {
      data: { session: name, seq, ...data },
    });
  const found = entry === undefined ? undefined : undoable(entry);
  if (found === undefined)
    throw refuse(`it is no rewind, summary, pruning, anchor, handoff or merge of '${name}'`);
  // A rewind hides itself.
  if (found.act === 'rewind') return found;
  const [range] = await store.views.ranges(id, { from: seq });
  const hidden = range?.hiddenBy;
  if (hidden !== undefined) throw refuse(`the rewind ${name}@${hidden} hides it`, { hidden });
  return found;
}

/** Refuses to undo an act other than a rewind that entries follow which the undo would hide. */
async function assertLast(
  store: TapeStore,
  { id, session: name, settled }: SessionInfo,
  last: Act,
): Promise<void> {
  const what = `cannot undo ${actNames[last.act]} ${name}@${last.seq}`;
  // A rewind ends where all calls have results: it would hide their messages, too.
  if (settled < last.seq - 1)
    throw new SessionError('SESSION_CANNOT_UNDO', `${what}: calls before it have no result yet`, {
      data: { session: name, seq: last.seq, settled },
    });
  const { start, entries } = select(await Array.fromAsync(store.views.entries(id)), 'last-boundary');
  const shown = [...(start === undefined ? [] : [start]), ...entries].toSorted((a, b) => a.seq - b.seq);
  const after = shown.find((entry) => isAfter(entry, last));
  if (after === undefined) return;
  const { seq, kind } = after;
  const before = shown.findLast((entry) => entry.seq < last.seq && !entry.inherited && isUserMessage(entry));
  throw new SessionError('SESSION_CANNOT_UNDO', `${what}: ${kind} ${name}@${seq} follows it`, {
    data: {
      session: name,
      seq: last.seq,
      after: { seq, kind },
      ...(isUserMessage(after) ? { message: seq } : before !== undefined && { before: before.seq }),
    },
  });
}

/** Whether a visible entry follows an act other than a rewind, which can then not be undone: a rewind would hide it, too. */
export function isAfter(entry: Entry, { act, seq }: Act): boolean {
  const isOwn = act === 'merge' && entry.seq === seq + 1 && entry.meta.source === 'merge';
  return entry.seq > seq && !stays(entry) && !isOwn;
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
