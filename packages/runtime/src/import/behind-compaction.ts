import type { Seq, SqliteTapeStore } from '@tapedeck/tape';
import { spineOf } from './change.ts';
import { importedIn, type Shown } from './imported.ts';
import { wholeDraft } from './later-draft.ts';
import { type Origins, sessionOf } from './origins.ts';
import type { Base, ConversationPlan, ImportPlan } from './plan.ts';

/** A compaction with which a copy begins, where its source has it. */
interface Beginning {
  /** The key of the boundary. */
  readonly key: string;
  /** Its name in the source, where others may precede it. */
  readonly name: string | undefined;
  readonly base: Base;
  /** What the boundary keeps in view of what is before it: the copy has that behind the boundary. */
  readonly kept: readonly Shown[];
}

/**
 * The compaction with which a copy begins, as its source has it: nothing of a session that precedes its last compaction is in
 * a copy of it. Undefined where the copy was here first, and has all that it shows.
 */
export function beginningIn(
  store: SqliteTapeStore,
  { format, session, copyOf, exportOf, conversations: [main] }: ImportPlan,
  origins: Origins,
): Beginning | undefined {
  const { key, mark } = main?.spine[0] ?? {};
  // What an export begins with is known by its entries.
  if (exportOf !== undefined || copyOf === undefined) return undefined;
  if (key === undefined || mark !== 'boundary') return undefined;
  const name = sessionOf(store, { format, session: copyOf });
  const source = name === undefined ? undefined : store.sessions.find(name);
  if (source === undefined) return undefined;
  const own =
    sessionOf(store, { format, session }) ?? origins.find(JSON.stringify({ format, session }))?.session;
  const info = own === undefined ? source : (store.sessions.find(own) ?? source);
  const shown = spineOf(importedIn(store, info.session).shown);
  const i = shown.findIndex((entry) => entry.key === key);
  const boundary = shown[i];
  if (boundary === undefined || i === 0) return undefined;
  const { ref } = boundary;
  const kept = ref === undefined ? [] : shown.slice(0, i).filter(({ seq }) => seq >= ref);
  const places = new Map<string, Seq>(kept.map((entry) => [entry.key, entry.seq]));
  // A copy that has written its boundary itself was forked before that, which it may have written more than once.
  const cut = info === source ? boundary.seq - 1 : Math.min(boundary.seq - 1, info.base);
  const base = { session: source.id, cut, places };
  return { key, name: boundary.name, base, kept };
}

/**
 * A conversation of a copy as its source has it, to be compared from the compaction on: what the boundary keeps in view is
 * not behind it once more. Pure.
 */
export function behindCompaction(
  conversation: ConversationPlan,
  { key, name, base, kept }: Beginning,
): ConversationPlan {
  const { spine, settled, keeps, asides } = conversation;
  const [boundary, ...rest] = spine;
  if (boundary?.key !== key) return conversation;
  // By their keys alone: Claude Code writes them there as answers that took no tokens.
  const isRepeated = kept.every((entry, i) => entry.key === rest[i]?.key && entry.kind === rest[i]?.kind);
  if (!isRepeated) return conversation;
  const [first] = kept;
  const named = name === undefined || boundary.name === name ? boundary : { ...wholeDraft(boundary), name };
  return {
    ...conversation,
    base,
    spine: [named, ...rest.slice(kept.length)],
    settled: Math.max(Math.min(settled, 1), settled - kept.length),
    keeps: first === undefined ? keeps : new Map([...keeps, [key, first.key]]),
    asides: asides.map(({ draft, after }) => ({
      draft,
      after: Math.max(Math.min(after, 1), after - kept.length),
    })),
  };
}
