import { type Entry, type HomeStore, type Seq, TapeError } from '@tapedeck/tape';
import { changeOf } from '../imported/change.ts';
import type { Cleaner } from '../imported/cleaner.ts';
import { importedIn, isImportRewind, isSaid } from '../imported/imported.ts';
import { keyOf } from '../imported/keys.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import { type ConversationPlan, isAside } from '../plan/plan.ts';
import { appendDrafts } from './append-drafts.ts';
import { rewindDraft } from './batch.ts';
import { prepared } from './prepared.ts';
import type { Reconciled } from './reconciled.ts';

/** A session as an import left it. */
export interface LeftTape {
  readonly session: string;
  /** The hash of its newest entry. */
  readonly head: string;
  /** The first position that has something of the open end of its source. */
  readonly from: Seq;
}

/** The most entries that are read to find where a source goes on. */
const entriesMax = 5_000;

/**
 * How an import left a session, for the next one. Undefined where its newest entries are not those of the open end of its
 * source alone: then the whole of it has to be compared.
 */
export function leftTape(store: HomeStore, session: string, keys: ReadonlySet<string>): LeftTape | undefined {
  const info = store.sessions.find(session);
  if (info === undefined) return undefined;
  const left = new Set(keys);
  for (const entry of newest(store, session, info.head)) {
    if (entry.kind === 'rewind' && !isImportRewind(entry)) return undefined;
    const key = keyOf(entry);
    const isImport = entry.key !== undefined && entry.meta.source === 'import';
    if (isImport ? !isAside(entry) && !keys.has(key) : isSaid(entry)) return undefined;
    // The first writing of a draft has its own key; of a later one the number of earlier ones would have to be known.
    if (!isImport || entry.key !== `u:${key}` || !left.delete(key)) continue;
    if (left.size === 0) return { session: info.id, head: info.headHash, from: entry.seq };
  }
  return undefined;
}

/** The newest own entries of a session, the last one first. Usually few of them suffice, and each may have many MB. */
function* newest(store: HomeStore, session: string, head: Seq): Generator<Entry> {
  let [to, count] = [head, 1];
  while (to > Math.max(0, head - entriesMax)) {
    const from = Math.max(1, to - count + 1);
    yield* [...store.entries.read(session, { own: true, from, to })].reverse();
    to = from - 1;
    count = Math.min(2 * count, 256);
  }
}

/** Whether a subagent was merged into a session at or behind a position. */
function hasMerge(store: HomeStore, session: string, from: Seq): boolean {
  const marks = store.entries.read(session, { own: true, kind: 'anchor', from });
  return [...marks].some(({ name }) => name?.startsWith('merge/') === true);
}

/**
 * Writes what follows the settled part of a session whose source has grown, in one transaction. Undefined when the session is
 * no longer as the last import left it: then the whole of it has to be compared.
 */
export function reconcileEnd(
  store: HomeStore,
  { session, head, from }: LeftTape,
  plan: ConversationPlan,
  clean?: Cleaner,
): Reconciled | undefined {
  const info = store.sessions.find(session);
  if (info === undefined || info.headHash !== head || info.lifecycle !== 'active') return undefined;
  const conversation = prepared(plan, clean);
  const imported = importedIn(store, session, undefined, from);
  const { rewindTo, drafts } = changeOf(conversation, imported);
  // A merge that the rewind hides is made again, where all subagents are known.
  if (rewindTo !== undefined && hasMerge(store, session, rewindTo + 1)) return undefined;
  const batch = [...(rewindTo === undefined ? [] : [rewindDraft(rewindTo)]), ...drafts.map(wholeDraft)];
  try {
    const wrote = appendDrafts(store, session, batch, head);
    return { conversation: plan.key, session: info.session, created: false, ...wrote };
  } catch (error) {
    // Another import was faster, or the session takes nothing: the way through all of it says which.
    if (error instanceof TapeError) return undefined;
    throw error;
  }
}
