import type { Entry, HomeStore } from '@tapedeck/tape';
import { callOf, isObject, isoTime, totalOf } from '@tapedeck/tape/internal';
import { isTyped } from '../output/local-command.ts';
import { toneOf } from '../output/session.ts';
import type { Item } from '../transcript/fold.ts';
import { mergeOf, stateIn } from '../transcript/item-rows.ts';
import { isUndated, roleOf, timeOfEntry } from '../transcript/wanted.ts';
import { isDamaged } from './damaged-reads.ts';
import type { Command, TimelineItem } from './data.ts';
import { partsIn, type ShowLine } from './parts.ts';
import { refOf, shownAs } from './source.ts';
import { flat } from './texts.ts';

/** What an item is shown with. */
export interface Around {
  readonly store: HomeStore;
  /** The session on whose own tape an entry is. */
  owner(entry: Entry): string;
  hiddenBy(seq: number): number | undefined;
  show: ShowLine;
  /** Whether an undo of the act of an entry is possible now. */
  canUndo(entry: Entry): boolean;
  /** A command about the entry at a position. */
  line(verb: string, seq: number, ...options: readonly string[]): string;
}

/** Characters of a name. */
const nameMax = 200;

/** Makes what a timeline shows of an item of a transcript. */
export function itemOf(item: Item, around: Around): TimelineItem {
  const { entry } = item;
  const { seq, name, kind: entryKind, meta, ref, inherited } = entry;
  const kind = kindOf(entry);
  const role = roleOf(entry);
  const call = callOf(entry);
  const hiddenBy = around.hiddenBy(seq);
  // A compaction is called by what it is.
  const isNamed = entryKind !== 'message' && entryKind !== 'compaction';
  const label = isNamed ? (name ?? (kind === 'event' ? entryKind : undefined)) : undefined;
  return {
    seq,
    owner: around.owner(entry),
    inherited,
    kind,
    ...((role === 'user' || role === 'assistant' || role === 'tool') && { role }),
    ...(entryKind === 'message' && !isTyped(entry) && { aside: true }),
    ...(!isUndated(entry) && !isDamaged(entry) && { at: isoTime(timeOfEntry(entry)) }),
    ...(typeof meta.model === 'string' && { model: flat(meta.model, nameMax) }),
    ...(call !== undefined && { tokens: totalOf(call.usage) }),
    ...(label !== undefined && { name: flat(label, nameMax) }),
    parts: partsIn(item, around.show),
    ...(hiddenBy !== undefined && { hiddenBy }),
    ...(entryKind === 'redaction' && ref !== undefined && { of: ref }),
    ...(kind === 'merge' && { child: childOf(entry, around.store) }),
    ...(isObject(meta.view) && { seen: true }),
    commands: commandsOf(entry, kind, around),
  };
}

function kindOf({ kind, name = '', mark }: Entry): TimelineItem['kind'] {
  switch (kind) {
    case 'message':
    case 'tool-result':
      return 'message';
    case 'compaction':
      return 'boundary';
    case 'anchor':
      return name.startsWith('merge/') ? 'merge' : mark === 'boundary' ? 'boundary' : 'anchor';
    case 'rewind':
    case 'redaction':
    case 'result':
      return kind;
    default:
      return 'event';
  }
}

/** The child of a merge, as the mark of the merge records it, under the name that it has now. */
function childOf(entry: Entry, store: HomeStore): NonNullable<TimelineItem['child']> {
  const state = stateIn(entry.payload);
  const { child: name } = mergeOf(entry, state);
  const info = shownAs(store, typeof state.child === 'string' ? state.child : name);
  const { range, strategy, status } = state;
  const [from, to] = Array.isArray(range) ? range : [];
  const word = strategy === 'discard' ? 'discarded' : flat(String(status ?? 'merged'), nameMax);
  return {
    session: info === undefined ? flat(name, nameMax) : refOf(store, info),
    there: info !== undefined,
    ...(typeof from === 'number' && typeof to === 'number' && { range: [from, to] }),
    state: word,
    tone: toneOf(word),
  };
}

/** What can be done at an entry. */
function commandsOf(
  entry: Entry,
  kind: TimelineItem['kind'],
  { line, show, canUndo }: Around,
): readonly Command[] {
  if (isDamaged(entry)) return [];
  const { seq, meta } = entry;
  return [
    { what: 'Fork here', line: line('fork', seq) },
    { what: 'Print it', line: show(seq) },
    ...(isObject(meta.view)
      ? [{ what: 'See what its model saw', line: line('view', seq, '--explain') }]
      : []),
    ...(kind === 'merge' ? [{ what: 'Trace it', line: line('trace', seq) }] : []),
    ...(canUndo(entry) ? [{ what: 'Undo it', line: line('undo', seq) }] : []),
  ];
}
