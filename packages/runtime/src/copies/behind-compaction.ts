import type { Draft, HomeStore, Seq } from '@tapedeck/tape';
import { knownAs, spineOf } from '../imported/change.ts';
import { isErased, withoutContent } from '../imported/erased.ts';
import { importedIn, type Shown } from '../imported/imported.ts';
import { mainOf, type Origins, sourceNamedBy } from '../imported/origins.ts';
import { DraftMaker, LaterDraft, outlineOf, wholeDraft } from '../plan/later-draft.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { copiesIn } from './copies.ts';

/** A compaction with which a copy begins, where its source has it. */
interface Beginning {
  /** The key of the boundary. */
  readonly key: string;
  /** What precedes it in the source. */
  readonly before: readonly Draft[];
  /** What the boundaries of the source keep in view, by the keys of both, the own one included. */
  readonly keeps: ReadonlyMap<string, string>;
  /** What the boundary keeps in view of what is before it: the copy has that behind the boundary. */
  readonly kept: readonly Shown[];
  /** The boundary as the source has it, where others may precede it. */
  readonly named: (boundary: Draft) => Draft;
}

/**
 * The compaction with which a copy begins, as its source has it: nothing of a session that precedes its last compaction is in
 * a copy of it. Undefined where the copy was here first, and has all that it shows.
 */
export function beginningIn(store: HomeStore, plan: ImportPlan, origins: Origins): Beginning | undefined {
  const [main] = plan.conversations;
  const [first] = main?.spine ?? [];
  // What an export begins with is known by its entries.
  if (plan.exportOf !== undefined || first?.key === undefined || first.mark !== 'boundary') return undefined;
  const { key } = first;
  const own = mainOf(store, plan, origins);
  if (own !== undefined) return beginningOf(store, own.session, key);
  const named = sourceNamedBy(store, plan)?.session;
  const others = [...(named === undefined ? [] : [named]), ...copiesIn(store).compactedAt(first)];
  for (const one of others) {
    // What takes no fork is no beginning of a new session.
    const isActive = store.sessions.find(one)?.lifecycle === 'active';
    const beginning = isActive ? beginningOf(store, one, key) : undefined;
    if (beginning !== undefined) return beginning;
  }
  return undefined;
}

/** What a session shows up to a compaction; undefined where it does not, or shows nothing before it. */
function beginningOf(store: HomeStore, session: string, key: string): Beginning | undefined {
  const shown = spineOf(importedIn(store, session).shown);
  const i = shown.findIndex((entry) => entry.key === key);
  const boundary = shown[i];
  if (boundary === undefined || i === 0) return undefined;
  const { ref, name } = boundary;
  const before = shown.slice(0, i);
  return {
    ...{ key, before: before.map(draftsIn(store, session)), keeps: keepsIn(shown.slice(0, i + 1)) },
    kept: ref === undefined ? [] : before.filter(({ seq }) => seq >= ref),
    named: namedAs(name),
  };
}

/** What makes drafts of the entries of a session, which read them when their content is taken. */
function draftsIn(store: HomeStore, session: string): (entry: Shown) => Draft {
  const maker = new DraftMaker(({ seq, key }: Shown) => {
    const [entry] = store.entries.read(session, { from: seq, to: seq });
    if (entry === undefined) return [];
    const { kind, mark, name, payload, meta } = entry;
    const { again: _, usageBefore: __, ...own } = meta;
    const draft = {
      kind,
      ...(mark !== undefined && { mark }),
      ...(name !== undefined && { name }),
      payload,
      meta: own,
      key,
    };
    return [outlineOf(isErased(entry) ? withoutContent(draft) : draft)];
  });
  return (entry) => {
    const { kind, key, mark, name, content } = entry;
    const fields = { kind, key, ...(mark !== undefined && { mark }), ...(name !== undefined && { name }) };
    const draft = new LaterDraft(fields, { maker, step: entry, i: 0, bytes: 0 });
    return knownAs(draft, content);
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

/** Gives a draft another name, and the same one each time. */
function namedAs(name: string | undefined): (draft: Draft) => Draft {
  const named = new WeakMap<Draft, Draft>();
  return (draft) => {
    if (name === undefined || draft.name === name) return draft;
    const known = named.get(draft) ?? { ...wholeDraft(draft), name };
    named.set(draft, known);
    return known;
  };
}

/**
 * Puts before a conversation that begins at a compaction what precedes that in its source, as copies of the whole source have
 * it. What the boundary keeps in view does not follow it a second time. Pure.
 */
export function behindCompaction(
  conversation: ConversationPlan,
  { key, before, keeps, kept, named }: Beginning,
): ConversationPlan {
  const { spine, settled, asides } = conversation;
  const [boundary, ...rest] = spine;
  if (boundary?.key !== key) return conversation;
  // By their keys alone: Claude Code writes them there as answers that took no tokens.
  const isRepeated = kept.every((entry, i) => entry.key === rest[i]?.key && entry.kind === rest[i]?.kind);
  if (!isRepeated) return conversation;
  const placeOf = (after: number) => before.length + Math.max(Math.min(after, 1), after - kept.length);
  return {
    ...conversation,
    spine: [...before, named(boundary), ...rest.slice(kept.length)],
    settled: placeOf(settled),
    keeps: new Map([...conversation.keeps, ...keeps]),
    asides: asides.map(({ draft, after }) => ({ draft, after: placeOf(after) })),
  };
}
