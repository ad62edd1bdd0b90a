import type { Draft, HomeStore, Seq, SessionInfo } from '@tapedeck/tape';
import { spineOf } from '../imported/change.ts';
import { importedIn, type Shown } from '../imported/imported.ts';
import { type Origins, sourceNamedBy } from '../imported/origins.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { type Behind, behindOwnWork, forkedBehind } from './behind-own-work.ts';
import { branchesOf } from './branches-of.ts';
import { copiesIn } from './copies.ts';
import { draftsIn, namedAs } from './drafts-in.ts';
import { begunMainOf } from './empty-main.ts';
import { behindKept, placed } from './placed.ts';

/** A compaction that a copy has of its source, where that has it. */
interface Beginning {
  /** The key of the boundary. */
  readonly key: string;
  /** What precedes it in the source. */
  readonly before: readonly Shown[];
  /** Makes drafts of that. */
  readonly draftOf: (entry: Shown) => Draft;
  /** What the boundaries of the source keep in view, by the keys of both, the own one included. */
  readonly keeps: ReadonlyMap<string, string>;
  /** What the boundary keeps in view of what is before it: the copy has that behind the boundary. */
  readonly kept: readonly Shown[];
  /** The boundary as the source has it, where others may precede it. */
  readonly named: (boundary: Draft) => Draft;
  /** Where something precedes it that no source has: how a copy is forked behind it. */
  readonly from: Behind | undefined;
}

/**
 * The compactions that a copy has of its source, as that has them. A copy has what a compaction kept behind that, with other
 * links: one of `--fork-session` begins with the compaction, one of `/branch` has what precedes it, too. None where the copy
 * was here first, and has all that it shows.
 */
export function beginningsIn(store: HomeStore, plan: ImportPlan, origins: Origins): readonly Beginning[] {
  const [main] = plan.conversations;
  const compactions = main === undefined ? [] : compactionsIn(main);
  return compactions.flatMap((boundary) => {
    const isFirst = boundary === main?.spine[0];
    return beginningWith(store, plan, { origins, boundary, isFirst }) ?? [];
  });
}

/** The compaction with which a conversation begins, and the last one that keeps nothing that is before it. */
function compactionsIn({ spine, keeps, exported }: ConversationPlan): readonly Draft[] {
  const [first] = spine;
  const last = spine.findLast(({ mark, key = '' }) => mark === 'boundary' && !keeps.has(key));
  const all = new Set(first?.mark === 'boundary' ? [first, last] : [last]);
  // What was exported is known by its entries.
  return [...all].flatMap((one) => (one === undefined || exported?.has(one.key ?? '') === true ? [] : one));
}

function beginningWith(
  store: HomeStore,
  plan: ImportPlan,
  {
    origins,
    boundary,
    isFirst,
  }: { readonly origins: Origins; readonly boundary: Draft; readonly isFirst: boolean },
): Beginning | undefined {
  const { key } = boundary;
  if (key === undefined) return undefined;
  const own = begunMainOf(store, plan, origins);
  if (own !== undefined) {
    // A branch of it may have the compaction of the source, where that left it.
    const isWritten = ({ id }: SessionInfo) =>
      [...store.entries.read(id, { own: true, key: `u:${key}`, limit: 1 })].length > 0;
    const branches = own.parentId === undefined ? [] : branchesOf(store, plan).filter(isWritten);
    for (const one of [own, ...branches]) {
      const beginning = beginningOf(store, one.session, { key, isFirst });
      if (beginning !== undefined) return inheritedBy(one, beginning);
    }
    return undefined;
  }
  const named = sourceNamedBy(store, plan)?.session;
  const others = [...(named === undefined ? [] : [named]), ...copiesIn(store).compactedAt(boundary)];
  for (const one of others) {
    // What takes no fork is no beginning of a new session.
    const isActive = store.sessions.find(one)?.lifecycle === 'active';
    const beginning = isActive ? beginningOf(store, one, { key, isFirst }) : undefined;
    if (beginning !== undefined) return beginning;
  }
  return undefined;
}

/** The beginning of a session that is here already: it was forked where what it inherits ends. */
function inheritedBy({ parentId, base }: SessionInfo, beginning: Beginning): Beginning {
  if (beginning.from === undefined) return beginning;
  const shown = beginning.from.shown.filter(({ seq }) => seq <= base);
  const isForked = parentId !== undefined && shown.length > 0;
  return {
    ...beginning,
    from: isForked ? { ...beginning.from, session: parentId, shown } : undefined,
  };
}

/** What a session shows up to a compaction; undefined where it does not, or shows nothing before it. */
function beginningOf(
  store: HomeStore,
  session: string,
  { key, isFirst }: { readonly key: string; readonly isFirst: boolean },
): Beginning | undefined {
  const shown = spineOf(importedIn(store, session).shown);
  const i = shown.findIndex((entry) => entry.key === key);
  const boundary = shown[i];
  // One with which a copy does not begin stands elsewhere in it only for what it keeps.
  if (!isFirst && boundary?.ref === undefined) return undefined;
  const from = boundary && forkedBehind(store, session, shown.slice(i));
  if (boundary === undefined || (i === 0 && from === undefined)) return undefined;
  const { ref, name } = boundary;
  const before = shown.slice(0, i);
  return {
    ...{ key, before, draftOf: draftsIn(store, session), keeps: keepsIn(shown.slice(0, i + 1)) },
    kept: ref === undefined ? [] : before.filter(({ seq }) => seq >= ref),
    named: namedAs(name),
    from,
  };
}

/** What boundaries keep in view, by the keys of both. */
function keepsIn(shown: readonly Shown[]): ReadonlyMap<string, string> {
  const keys = new Map<Seq, string>(shown.map(({ seq, key }) => [seq, key]));
  return new Map(
    shown.flatMap(({ mark, key, ref }) => {
      const kept = mark === 'boundary' && ref !== undefined ? keys.get(ref) : undefined;
      return kept === undefined ? [] : [[key, kept] as const];
    }),
  );
}

/**
 * Puts before a compaction of a copy what precedes that in its source, as the source has it. What the boundary keeps in
 * view does not follow it a second time. Pure.
 */
export function behindCompaction(conversation: ConversationPlan, beginning: Beginning): ConversationPlan {
  const { key, kept, named, from } = beginning;
  const { spine, base } = conversation;
  const at = spine.findIndex((draft) => draft.key === key);
  const [boundary, ...rest] = spine.slice(Math.max(0, at));
  if (at === -1 || boundary === undefined) return conversation;
  const before = beginning.before.filter(({ seq }) => seq > (base?.cut ?? 0));
  const repeated = new Set(kept);
  const keys = new Set(before.flatMap((entry) => (repeated.has(entry) ? [] : entry.key)));
  const hasBegun = spine.slice(0, at).every((draft) => keys.delete(draft.key ?? '')) && keys.size === 0;
  if (at > 0 && !hasBegun) return conversation;
  const behind = from && behindOwnWork(conversation, at, { ...from, named });
  if (behind !== undefined) return behind;
  // By their keys alone: Claude Code writes them there as answers that took no tokens.
  const isRepeated = kept.every((entry, i) => entry.key === rest[i]?.key && entry.kind === rest[i]?.kind);
  if (!isRepeated || (at > 0 && kept.length === 0)) return conversation;
  const behindBoundary = (after: number) => before.length + behindKept(after - at, kept.length);
  return {
    ...placed(conversation, (after) => Math.max(0, behindBoundary(after))),
    spine: [...before.map(beginning.draftOf), named(boundary), ...rest.slice(kept.length)],
    keeps: new Map([...conversation.keeps, ...beginning.keeps]),
  };
}
