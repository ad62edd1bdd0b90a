import type { Draft, HomeStore } from '@tapedeck/tape';
import { spineOf } from '../imported/change.ts';
import { importedIn, type Shown } from '../imported/imported.ts';
import type { Origins } from '../imported/origins.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { branchesOf } from './branches-of.ts';
import { copiesIn } from './copies.ts';
import { draftsIn, namedAs } from './drafts-in.ts';
import { begunMainOf } from './empty-main.ts';
import { placed } from './placed.ts';

/** What a session shows, and what makes drafts of that. */
interface Copy {
  readonly shown: readonly Shown[];
  readonly draftOf: (entry: Shown) => Draft;
}

/**
 * How a source is written whose copy was here first. A copy that `/branch` of Claude Code wrote has what a compaction kept behind
 * it, and its source has that before it. Both read alike: the source gets the order of the copy, and is a fork behind all that
 * both have.
 */
export class AsCopied {
  readonly #copies: readonly Copy[];

  constructor(store: HomeStore, plan: ImportPlan, origins: Origins) {
    this.#copies = copiesOf(store, plan, origins).map((id) => ({
      shown: spineOf(importedIn(store, id).shown),
      draftOf: draftsIn(store, id),
    }));
  }

  /** A conversation in the order of the copy that has most of its compactions so. Pure. */
  of(conversation: ConversationPlan): ConversationPlan {
    if (conversation.keeps.size === 0) return conversation;
    const all = this.#copies.map((copy) => inOrderOf(conversation, copy));
    return all.reduce((best, one) => (one.keeps.size < best.keeps.size ? one : best), conversation);
  }
}

/** The sessions that may have such an order: those that the source has here or, of a new one, those with its compaction. */
function copiesOf(store: HomeStore, plan: ImportPlan, origins: Origins): readonly string[] {
  const { conversations } = plan;
  const kept = new Set(conversations.flatMap(({ keeps }) => [...keeps.keys()]));
  if (kept.size === 0) return [];
  const own = begunMainOf(store, plan, origins);
  if (own !== undefined) {
    // One that was here first has its own order.
    if (own.parentId === undefined) return [];
    const isShown = importedIn(store, own.id).shown.some(({ key }) => kept.has(key));
    return isShown ? [own.id] : branchesOf(store, plan).map(({ id }) => id);
  }
  const compaction = conversations[0]?.spine.findLast(({ key = '' }) => kept.has(key));
  const others = compaction === undefined ? [] : [...copiesIn(store).compactedAt(compaction)];
  const isActive = (id: string) => store.sessions.find(id)?.lifecycle === 'active';
  return others.filter((id) => isActive(id) && importedIn(store, id).ownWork === undefined);
}

/** A conversation with what its compactions kept where a copy has that, as far as both begin alike. */
function inOrderOf(conversation: ConversationPlan, { shown, draftOf }: Copy): ConversationPlan {
  const { exported } = conversation;
  const keeps = new Map(conversation.keeps);
  const spine = [...conversation.spine];
  const uncounted: Draft[] = [];
  let [whole, same] = [conversation, 0];
  for (const [at, boundary] of conversation.spine.entries()) {
    const { mark, key = '' } = boundary;
    const from = mark === 'boundary' ? spine.findIndex((draft) => draft.key === keeps.get(key)) : -1;
    // One that begins with the compaction looks like a copy that lacks what precedes it. What was exported is known by its entries.
    if (from < 1 || from >= at || exported?.has(key) === true) continue;
    const kept = spine.slice(from, at);
    const [copied, ...its] = shown.slice(from, at + 1);
    while (same < from && isOf(shown[same], spine[same])) same += 1;
    if (same < from) break;
    const isAnew = copied?.ref === undefined && isOf(copied, boundary);
    if (copied === undefined || !isAnew || !kept.every((draft, i) => isOf(its[i], draft))) continue;
    spine.splice(from, kept.length + 1, namedAs(copied.name)(boundary), ...its.map(draftOf));
    keeps.delete(key);
    uncounted.push(...kept.filter((draft) => draft.kind === 'message'));
    const { settled } = whole;
    whole = placed(whole, (after) => (from < after && after <= at ? after + 1 : after));
    whole = { ...whole, settled: from < settled && settled <= at ? from : settled };
  }
  return keeps.size === conversation.keeps.size ? conversation : { ...whole, spine, keeps, uncounted };
}

/** Whether an entry is of the record of a draft. */
function isOf(entry: Shown | undefined, { key, kind }: Partial<Draft> = {}): boolean {
  return entry !== undefined && entry.key === key && entry.kind === kind;
}
