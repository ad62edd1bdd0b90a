import type { Entry, EntryKind, HomeStore, Seq, SessionInfo } from '@tapedeck/tape';
import type { EntryQuery, SessionRange } from '@tapedeck/tape/store';
import { fold, type Gap, isGap, isPart } from './fold.ts';
import { undoesOf } from './undoes.ts';
import { isByContent, isConversation, isWanted, isWithin, timeOfEntry, type Wanted } from './wanted.ts';

/** Which entries of a session to read. */
export interface Selection extends Wanted {
  readonly from: Seq;
  readonly to: Seq;
  /** True: its own entries alone; false: inherited ones alone. */
  readonly own?: boolean | undefined;
  /** The last N. */
  readonly last?: number | undefined;
}

/** All entries of a selection, in order. */
export function* readEntries(
  store: HomeStore,
  { id }: Pick<SessionInfo, 'id'>,
  { last, ...selection }: Selection,
): Generator<Entry> {
  const query = queryOf(selection);
  const wants = (entry: Entry) => isWanted(entry, selection);
  // A kind is found by the query alone.
  const { kind: _, from: _from, to: _to, own: _own, ...filters } = selection;
  const isPlain = Object.values(filters).every((value) => value === undefined);
  if (last === undefined || isPlain) {
    for (const entry of store.entries.read(id, { ...query, ...(last !== undefined && { last }) }))
      if (isPlain || wants(entry)) yield entry;
    return;
  }
  yield* lastOf(fromEnd(store, id, { query, page: last }), { last, wants });
}

function lastOf(
  newestFirst: Iterable<Entry>,
  { last, wants }: { readonly last: number; readonly wants: (entry: Entry) => boolean },
): Entry[] {
  const found: Entry[] = [];
  for (const entry of newestFirst) {
    if (found.length === last) break;
    if (wants(entry)) found.push(entry);
  }
  return found.reverse();
}

/** What a person reads of a session: not what a rewind hides, and without `all` the conversation alone. */
export interface Reading {
  readonly ranges: readonly SessionRange[];
  readonly hidden: boolean;
  readonly all: boolean;
}

/** The positions of a selection: those of the session itself, or the inherited ones, end where the others begin. */
export function boundsOf(
  { from, to, own }: Selection,
  { base }: Pick<SessionInfo, 'base'>,
): { readonly from: Seq; readonly to: Seq } {
  return {
    from: own === true ? Math.max(from, base + 1) : from,
    to: own === false ? Math.min(to, base) : to,
  };
}

/**
 * The entries that a person reads, in order, with a gap where a rewind hides some. `last` counts items and gaps; a gap is
 * nothing that a filter by content selects.
 */
export function readShown(
  store: HomeStore,
  info: Pick<SessionInfo, 'id' | 'base'>,
  selection: Selection,
  reading: Reading,
): Iterable<Entry | Gap> {
  const { id } = info;
  const { last } = selection;
  const { from, to } = boundsOf(selection, info);
  const isContent = isByContent(selection);
  const stretches = reading.ranges.flatMap((range) => {
    const [lo, hi] = [Math.max(range.from, from), Math.min(range.to, to)];
    return lo > hi ? [] : [{ from: lo, to: hi, isHidden: range.hiddenBy !== undefined && !reading.hidden }];
  });
  const wants = (entry: Entry) =>
    (reading.all || isConversation(entry)) && (isWanted(entry, selection) || isAnswer(entry, selection));
  const shown = function* (backward: boolean): Generator<Entry | Gap> {
    for (const { isHidden, ...stretch } of backward ? stretches.toReversed() : stretches) {
      const query = { ...queryOf(selection), ...stretch };
      const entries = backward
        ? fromEnd(store, id, { query, page: last ?? 0 })
        : store.entries.read(id, query);
      if (isHidden) {
        if (!isContent) yield* gapOf(store, id, { stretch, selection });
      } else for (const entry of entries) if (wants(entry)) yield entry;
    }
  };
  return last === undefined
    ? shown(false)
    : lastShown(shown(true), { last, isFiltered: isFiltered(selection) });
}

/** The gap of a hidden stretch; none where it has rewinds alone, as after an undo, or was made at another time. */
export function* gapOf(
  store: HomeStore,
  id: string,
  {
    stretch: { from, to },
    selection,
  }: {
    readonly stretch: Pick<Gap, 'from' | 'to'>;
    readonly selection: Pick<Selection, 'after' | 'before'>;
  },
): Generator<Gap> {
  let hidden = to - from + 1;
  let last: Entry | undefined;
  for (const rewind of store.entries.read(id, { from, to, kind: 'rewind' })) {
    hidden -= 1;
    last = rewind;
  }
  if (hidden === 0 || (last !== undefined && !isWithin(timeOfEntry(last), selection))) return;
  // Of a part of what a rewind hides it is not said what begins it.
  const undoes = last?.seq === to && last.ref === from - 1 ? undoesOf(store, id, last) : undefined;
  yield { from, to, hidden, undoes };
}

/** The entries of the last N items, in order: read from the end until they make that many. */
function lastShown(
  newestFirst: Iterator<Entry | Gap>,
  { last, isFiltered }: { readonly last: number; readonly isFiltered: boolean },
): (Entry | Gap)[] {
  const found: (Entry | Gap)[] = [];
  for (let missing = last; missing > 0; ) {
    for (let left = missing; left > 0; ) {
      const next = newestFirst.next();
      if (next.done === true) return found.reverse();
      found.push(next.value);
      // A part is shown with what it belongs to, which comes before it, unless a filter leaves that out.
      if (isGap(next.value) || isFiltered || !isPart(next.value)) left -= 1;
    }
    missing = isFiltered ? last - [...fold(found.toReversed())].length : 0;
  }
  return found.reverse();
}

/** Whether a selection may have a part without what it belongs to. */
function isFiltered({ kind, role, text, by, where }: Wanted): boolean {
  return [kind, text, by, where].some((filter) => filter !== undefined) || role === 'tool';
}

/** The results of the calls of a reader who wants the model's side. */
function isAnswer(entry: Entry, { role, ...others }: Wanted): boolean {
  return role === 'assistant' && entry.kind === 'tool-result' && isWanted(entry, others);
}

function queryOf({ from, to, own, kind }: Selection): EntryQuery {
  return {
    from,
    to,
    ...(own !== undefined && { own }),
    ...(kind === 'tool-call' ? { calls: true } : kind !== undefined && { kind: kind as EntryKind }),
  };
}

/** Entries of a page; one can have 256 KiB. */
const pageMax = 500;

/** Reads entries from the last one back, in growing pages. */
function* fromEnd(
  store: HomeStore,
  id: string,
  { query, page }: { readonly query: EntryQuery; readonly page: number },
): Generator<Entry> {
  let { to } = query;
  for (let last = Math.min(Math.max(20, page), pageMax); ; last = Math.min(2 * last, pageMax)) {
    const found = [...store.entries.read(id, { ...query, last, ...(to !== undefined && { to }) })];
    yield* found.toReversed();
    const [first] = found;
    if (first === undefined || found.length < last) return;
    to = first.seq - 1;
  }
}
