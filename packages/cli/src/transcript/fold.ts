import type { Entry } from '@tapedeck/tape';
import { clientCalls, isObject } from '@tapedeck/tape/internal';
import { commandText, isCommandOutput } from '../output/local-command.ts';
import type { Undoes } from './undoes.ts';

/** What a reader sees as one: an entry, with the results of its calls, the message of its merge or what a command printed. */
export interface Item {
  readonly entry: Entry;
  /** The results of the calls of the entry, by the ids of the calls. */
  readonly results: ReadonlyMap<string, Entry>;
  /** The message that a merge gave to the model, or what the command of an imported agent printed. */
  readonly report?: Entry;
  /** Of a rewind, the act that it undoes. */
  readonly undoes?: Undoes | undefined;
}

/** Entries that a rewind hides, in place of them. The rewind is the last of them. */
export interface Gap {
  readonly from: number;
  readonly to: number;
  /** How many they are without rewinds. */
  readonly hidden: number;
  /** What the last rewind undoes. */
  readonly undoes: Undoes | undefined;
}

export const isGap = (shown: object): shown is Gap => 'to' in shown;

/** An item whose parts have not all come. */
interface Growing {
  readonly entry: Entry;
  readonly results: Map<string, Entry>;
  readonly awaited: Set<string>;
  report?: Entry;
  awaitsReport: boolean;
}

/** Whether an entry belongs to an item before it: the result of a call, the message of a merge, what a command printed. */
export function isPart(entry: Entry): boolean {
  const { kind, meta } = entry;
  return (
    kind === 'tool-result' || (kind === 'message' && (meta.source === 'merge' || isCommandOutput(entry)))
  );
}

/** How many items wait for the results of the first: what comes between calls and results is little. */
const waitingMax = 64;

/** Folds results under their calls, and messages of merges under their marks, in one pass over entries in order. */
export function* fold(entries: Iterable<Entry | Gap>): Generator<Item | Gap> {
  const waiting: Growing[] = [];
  const done = function* (all: boolean): Generator<Item> {
    for (let [first] = waiting; first !== undefined; [first] = waiting) {
      const isGrowing = first.awaited.size > 0 || first.awaitsReport;
      if (isGrowing && !all && waiting.length <= waitingMax) return;
      waiting.shift();
      yield first;
    }
  };
  for (const entry of entries) {
    if (isGap(entry)) {
      yield* done(true);
      yield entry;
      continue;
    }
    const isTaken = takes(waiting, entry);
    for (const item of waiting) item.awaitsReport = false;
    if (!isTaken) {
      // A message after calls is the next turn: no result follows it.
      if (entry.kind === 'message') yield* done(true);
      waiting.push(growing(entry));
    }
    yield* done(false);
  }
  yield* done(true);
}

function growing(entry: Entry): Growing {
  const awaited = new Set(entry.kind === 'message' ? clientCalls(entry.payload) : []);
  const isMerge = entry.kind === 'anchor' && entry.name?.startsWith('merge/') === true;
  const awaitsReport = isMerge || (entry.kind === 'message' && commandText(entry) !== undefined);
  return { entry, results: new Map(), awaited, awaitsReport };
}

/** Gives an entry to the item that waits for it. */
function takes(waiting: readonly Growing[], entry: Entry): boolean {
  if (!isPart(entry)) return false;
  if (entry.kind === 'message') {
    const item = waiting.find(
      ({ awaitsReport, entry: { kind } }) => awaitsReport && (kind === 'message') === isCommandOutput(entry),
    );
    if (item !== undefined) item.report = entry;
    return item !== undefined;
  }
  const id = isObject(entry.payload) ? String(entry.payload.toolCallId) : '';
  const item = waiting.find(({ awaited }) => awaited.has(id));
  item?.awaited.delete(id);
  item?.results.set(id, entry);
  return item !== undefined;
}
