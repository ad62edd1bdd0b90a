import type { Entry, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject, isPrune } from '@tapedeck/tape/internal';
import { isBlobRef } from '@tapedeck/tape/store';

/** A session as it was when the export began, and the store that gives what of it is exported. */
export interface ExportSource {
  readonly store: TapeStore;
  readonly info: SessionInfo;
}

/** The entries of a session that no rewind hides, in order. */
export function shownEntries({ store, info }: ExportSource): AsyncIterable<Entry> {
  // A store of an export reads asynchronously.
  return store.views.entries(info.id, { policy: 'full', at: info.head }) as AsyncIterable<Entry>;
}

/** What a model had before it from one boundary to the next. */
export interface ModelContext {
  /** The boundary at its beginning, if it has one, with the entries that were kept before it, and all up to the next. */
  readonly entries: readonly Entry[];
  /** Those of them that the context before it ends with, the boundary included. */
  readonly repeated: readonly Entry[];
  /** The system prompt, where it is recorded. */
  readonly instructions: string | undefined;
}

/**
 * The contexts that the model of a session had, in order: a handoff or a compaction ends one and begins the next with its
 * summary. No more than one is in memory.
 */
export async function* contextsOf(source: ExportSource): AsyncGenerator<ModelContext> {
  let entries: Entry[] = [];
  let repeated: Entry[] = [];
  let instructions: string | undefined;
  for await (const entry of shownEntries(source)) {
    if (entry.name === 'instructions/text')
      instructions = (await instructionsIn(source.store, entry)) ?? instructions;
    // Outputs that were pruned later were whole when the model had them.
    if (isPrune(entry)) continue;
    if (entry.mark === 'boundary') {
      yield { entries, repeated, instructions };
      const from = entry.ref ?? entry.seq;
      entries = entries.filter((one) => one.seq >= from || isOfFork(one));
      entries.push(entry);
      repeated = [...entries];
    } else entries.push(entry);
  }
  yield { entries, repeated, instructions };
}

/** Whether an entry is the task of a fork, which its model has in each context. */
function isOfFork({ inherited, kind, name }: Entry): boolean {
  return !inherited && kind === 'anchor' && (name === 'fork/start' || name === 'intention');
}

/** The text that an event records as the system prompt. */
async function instructionsIn(store: TapeStore, { payload }: Entry): Promise<string | undefined> {
  const text = isObject(payload) ? payload.text : undefined;
  if (isBlobRef(text)) return Buffer.from(await store.entries.blob(text.hash)).toString();
  return typeof text === 'string' ? text : undefined;
}
