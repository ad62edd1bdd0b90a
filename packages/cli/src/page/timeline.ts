import type { Entry, HomeStore, SessionInfo } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import type { SessionRange } from '@tapedeck/tape/store';
import { fold, isGap, isPart } from '../transcript/fold.ts';
import { gapOf } from '../transcript/read.ts';
import { rewindText } from '../transcript/undoes.ts';
import { isConversation } from '../transcript/wanted.ts';
import { undoRule } from './can-undo.ts';
import { isDamaged } from './damaged-reads.ts';
import type { PageData, Timeline, TimelineItem } from './data.ts';
import { type Around, itemOf } from './item.ts';
import { withLeft } from './left.ts';
import { lineOf, needShown, type PageSource, placesOf, refOf } from './source.ts';

/** Positions of an answer. */
const positionsMax = 200;
/** Characters of the JSON of an answer from which it has no further items. */
const charsMax = 1_000_000;

/** Reads what a session shows in a range of positions: the entries of that range, and no more than belongs to them. */
export async function timeline(
  source: PageSource,
  { session, from, to, all = false, hidden = false }: Parameters<PageData['timeline']>[0],
): Promise<Timeline> {
  const { store } = source;
  const info = needShown(store, session);
  const { id, floor, head } = info;
  const lo = Math.max(floor + 1, from);
  const hi = Math.min(head, to, lo + positionsMax - 1);
  if (lo > hi) return { items: [], from: lo, to: Math.max(lo - 1, hi), floor, head };
  const ranges = store.views.ranges(id, { from: lo });
  const around = { ...aroundOf(source, info, ranges), canUndo: await undoRule(store, info, ranges) };
  const covered = { from: lo, to: hi };
  const items: TimelineItem[] = [];
  let chars = 0;
  const add = (item: TimelineItem) => {
    items.push(item);
    chars += JSON.stringify(item).length;
    return chars < charsMax;
  };
  const stretches = hidden ? [{ from: floor + 1, to: head }] : ranges;
  for (const stretch of stretches) {
    if (stretch.to < lo || stretch.from > covered.to) continue;
    if (isHidden(stretch)) {
      if (stretch.to > covered.to && stretch.from > lo) {
        // It comes with the part in which it ends.
        covered.to = stretch.from - 1;
        break;
      }
      covered.from = Math.min(covered.from, stretch.from);
      covered.to = Math.max(covered.to, stretch.to);
      const gap = gapItem(store, stretch, { id, around });
      if (gap === undefined || add(gap)) continue;
      covered.to = stretch.to;
      break;
    }
    if (readStretch(store, { id, stretch, lo, hi: covered.to, all }, (entry) => add(itemOf(entry, around))))
      continue;
    covered.to = items.at(-1)?.seq ?? lo;
    break;
  }
  return { items: await withLeft(source, info, { items, ...covered }), ...covered, floor, head };
}

function isHidden({ hiddenBy }: SessionRange): boolean {
  return hiddenBy !== undefined;
}

/**
 * Reads the items of a stretch that begin in a range, each with its results, wherever these are. Returns whether it was not
 * told to stop.
 */
function readStretch(
  store: HomeStore,
  {
    id,
    stretch,
    lo,
    hi,
    all,
  }: {
    readonly id: string;
    readonly stretch: SessionRange;
    readonly lo: number;
    readonly hi: number;
    readonly all: boolean;
  },
  take: (item: Parameters<typeof itemOf>[0]) => boolean,
): boolean {
  const begin = Math.max(stretch.from, lo);
  const from = begin === stretch.from ? begin : turnBefore(store, id, { from: stretch.from, to: begin - 1 });
  const entries = store.entries.read(id, { from, to: stretch.to });
  // It reads behind the range only while calls of the range lack their results.
  for (const item of fold(
    Iterator.from(entries).filter((entry) => all || isConversation(entry) || isDamaged(entry)),
  )) {
    if (isGap(item) || item.entry.seq < begin) continue;
    if (item.entry.seq > hi) break;
    if (!take(item)) return false;
    if (item.entry.seq === hi) break;
  }
  return true;
}

/** How far before a range the message is looked for whose results may be in it. */
const backMax = 1_000;

/** The position of the last message that begins a turn: what comes before it has no results behind it. */
function turnBefore(
  store: HomeStore,
  id: string,
  { from, to }: { readonly from: number; readonly to: number },
): number {
  const least = Math.max(from, to - backMax);
  // A merge or the output of a command is a message that belongs to an entry before it.
  const messages = [...store.entries.read(id, { from: least, to, kind: 'message', last: 8 })];
  const turn = messages.findLast((entry) => !isPart(entry));
  if (turn !== undefined) return turn.seq;
  const [call] = store.entries.read(id, { from: least, to, calls: true, last: 1 });
  // Without a call, the entry before the range can lack what its merge or command says, which is next.
  return call?.seq ?? Math.max(least, to);
}

/** What stands for the entries that rewinds hide, in some ranges of a session. */
export function gapsOf(
  source: PageSource,
  info: SessionInfo,
  ranges: readonly SessionRange[],
): readonly TimelineItem[] {
  const around = aroundOf(source, info, ranges);
  return ranges
    .filter(isHidden)
    .flatMap((range) => gapItem(source.store, range, { id: info.id, around }) ?? []);
}

/** What stands for the entries that a rewind hides. */
function gapItem(
  store: HomeStore,
  { from, to }: SessionRange,
  { id, around }: { readonly id: string; readonly around: Around },
): TimelineItem | undefined {
  const [gap] = gapOf(store, id, { stretch: { from, to }, selection: {} });
  const [rewind] = store.entries.read(id, { from: to, to });
  if (gap === undefined || rewind === undefined) return undefined;
  const what = rewindText(from - 1, gap.undoes);
  // What it hides is not there; it is.
  const { hiddenBy: _, ...item } = itemOf({ entry: rewind, results: new Map(), undoes: gap.undoes }, around);
  return {
    ...item,
    hides: { from, to, entries: gap.hidden, what },
  };
}

function aroundOf(source: PageSource, info: SessionInfo, ranges: readonly SessionRange[]): Around {
  const { store } = source;
  const placeOf = placesOf(store, info);
  const owners = new Map<string, string>();
  // The ancestor up to which the tapes are known.
  let last: SessionInfo | undefined = info;
  const owner = ({ tape }: Entry): string => {
    while (last !== undefined && !owners.has(tape)) {
      owners.set(last.tape, isDeleted(last) ? last.id : refOf(store, last));
      last = last.parentId === undefined ? undefined : store.sessions.find(last.parentId);
    }
    return owners.get(tape) ?? '';
  };
  const line = (verb: string, seq: number, ...options: readonly string[]) =>
    lineOf(source, verb, [placeOf(seq)], options);
  return {
    store,
    owner,
    hiddenBy: (seq) => ranges.find(({ to }) => seq <= to)?.hiddenBy,
    // What stands for hidden entries is a rewind.
    canUndo: ({ kind, inherited }) => kind === 'rewind' && !inherited,
    show: (seq, output = false) => line('show', seq, ...(output ? ['--output'] : [])),
    line,
  };
}
