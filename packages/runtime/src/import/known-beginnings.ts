import type { Draft, HomeStore } from '@tapedeck/tape';
import { AsCopied } from '../copies/as-copied.ts';
import { beginningsIn, behindCompaction } from '../copies/behind-compaction.ts';
import { begunMainOf } from '../copies/empty-main.ts';
import type { ErasedInPlan } from '../copies/erased-in-plan.ts';
import { behindResumed, type Resumed, resumedFrom } from '../copies/resumed.ts';
import type { Cleaner } from '../imported/cleaner.ts';
import { continuedFrom } from '../imported/copy-notes.ts';
import type { Origins } from '../imported/origins.ts';
import type { Base, ConversationPlan, DerivedEdge, ImportPlan } from '../plan/plan.ts';
import { type Exported, exportedOf, hasBase, withBase } from './base.ts';
import { prepared } from './prepared.ts';

/** How conversations are prepared. */
interface Preparing {
  readonly clean: Cleaner | undefined;
  readonly as: string | undefined;
  readonly origins: Origins;
  readonly erasedElsewhere: ErasedInPlan | undefined;
}

/**
 * Prepares the conversations of a plan, parents first, and takes from each what the home has of its beginning: in the session that
 * was exported, or resumed under new ids. What precedes a compaction of a copy is what the home has before that.
 */
export class KnownBeginnings {
  /** The session that the transcript was exported of. */
  readonly exportOf: Exported | undefined;
  /** The same, where the conversations are forks of it. */
  readonly exported: Exported | undefined;
  readonly #compactions: ReturnType<typeof beginningsIn>;
  readonly #copied: AsCopied | undefined;
  /** What has the order of a copy, by conversations. */
  readonly #inOrder = new Map<string, readonly Draft[]>();
  readonly #store: HomeStore;
  readonly #plan: ImportPlan;
  readonly #preparing: Preparing;
  /** What was made of drafts that conversations share: of one conversation alone nothing is shared. */
  readonly #made: Map<Draft, Draft> | undefined;
  /** What the plan has of each conversation, prepared, where nothing was taken from its beginning. */
  readonly #wholes = new Map<string, readonly Draft[]>();
  readonly #bases = new Map<string, Base>();
  #resumed: Resumed | undefined;

  constructor(store: HomeStore, plan: ImportPlan, preparing: Preparing) {
    [this.#store, this.#plan, this.#preparing] = [store, plan, preparing];
    this.exportOf = exportedOf(store, plan);
    this.exported =
      this.exportOf !== undefined && isBased(store, plan, this.exportOf, preparing)
        ? this.exportOf
        : undefined;
    // Who names the session wants another one beside those that are here.
    const { as, origins } = preparing;
    this.#compactions = as === undefined ? beginningsIn(store, plan, origins) : [];
    this.#copied = as === undefined ? new AsCopied(store, plan, origins) : undefined;
    this.#made = plan.conversations.some(({ kind }) => kind === 'branch') ? new Map() : undefined;
  }

  /** A conversation of the plan, as it is written behind what the home has of it. */
  behind(given: ConversationPlan): ConversationPlan {
    const { as, origins } = this.#preparing;
    const [store, plan, compactions] = [this.#store, this.#plan, this.#compactions];
    const whole = this.#ordered(this.#prepared(given));
    const isCopy = compactions.length > 0;
    if (whole.kind === 'main' && as === undefined && whole.base === undefined && !isCopy)
      this.#resumed = resumedFrom(store, plan, whole, origins);
    // A subagent that knows what its parent knew begins as that does.
    const isOwn = whole.kind === 'main' || whole.kind === 'branch' || whole.parent?.inherits === true;
    const found = isCopy
      ? compactions.reduce(behindCompaction, whole)
      : this.#resumed !== undefined && isOwn
        ? behindResumed(store, plan, whole, this.#resumed)
        : whole;
    if (found.base !== undefined) this.#bases.set(found.key, found.base);
    return found;
  }

  /** How many drafts a conversation has in common with its parent as both are written, of so many as both have in the plan. */
  commonOf({ spine, parent }: ConversationPlan, count: number): number {
    if (this.#inOrder.size === 0) return count;
    const key = parent?.key ?? '';
    const above = this.#inOrder.get(key) ?? this.#wholes.get(key) ?? [];
    const differs = spine.slice(0, count).findIndex((draft, i) => draft.key !== above[i]?.key);
    return differs === -1 ? count : differs;
  }

  /** The edges that a session of the plan says: what has the base, or what precedes the compaction, says how that follows. */
  edgesOf(conversation: string): readonly DerivedEdge[] {
    const places = this.#bases.get(conversation)?.places;
    const kept = new Set(this.#compactions.flatMap(({ kept }) => kept.map(({ key }) => key)));
    return this.#plan.derived.filter(({ of }) => places?.has(of) !== true && !kept.has(of));
  }

  #ordered(whole: ConversationPlan): ConversationPlan {
    const one = whole.base === undefined ? (this.#copied?.of(whole) ?? whole) : whole;
    if (one !== whole) this.#inOrder.set(one.key, one.spine);
    return one;
  }

  #prepared(given: ConversationPlan): ConversationPlan {
    const { clean, erasedElsewhere } = this.#preparing;
    const known = this.exported === undefined ? given : withBase(given, this.exported);
    const begun = known.base === undefined ? this.#wholes.get(known.parent?.key ?? '') : undefined;
    const whole = withoutErasedTitle(prepared(known, clean, this.#made, begun), erasedElsewhere);
    if (this.#made !== undefined && known.base === undefined) this.#wholes.set(whole.key, whole.spine);
    return whole;
  }
}

/**
 * Whether the session of a plan, if it is there already, has what the exported session has of it, or was forked from that
 * elsewhere.
 */
function isBased(
  store: HomeStore,
  plan: ImportPlan,
  exported: Exported,
  { as, origins }: Pick<Preparing, 'as' | 'origins'>,
): boolean {
  const [main] = plan.conversations;
  const base = main && withBase(main, exported).base;
  if (base === undefined) return true;
  const info = as === undefined ? begunMainOf(store, plan, origins) : store.sessions.find(as);
  return (
    info === undefined || hasBase(store, info.id, base) || continuedFrom(store, info.id) === exported.session
  );
}

/** A conversation without its title, if that quotes what was erased. */
function withoutErasedTitle(
  conversation: ConversationPlan,
  erased: Pick<ErasedInPlan, 'hasTitle'> | undefined,
): ConversationPlan {
  const { title, ...others } = conversation;
  return title !== undefined && erased?.hasTitle(title) === true ? others : conversation;
}
