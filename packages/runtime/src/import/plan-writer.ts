import type { HomeStore } from '@tapedeck/tape';
import type { OnProgress } from '@tapedeck/tape/store';
import { copiesIn } from '../copies/copies.ts';
import type { ErasedInPlan } from '../copies/erased-in-plan.ts';
import type { Begun } from '../copies/walk.ts';
import { sharedWith } from '../edges/fork-of.ts';
import { deleteMisplaced } from '../edges/misplaced.ts';
import { callerOf } from '../edges/parent-session.ts';
import type { Shown } from '../imported/imported.ts';
import type { SharedCounts } from '../imported/ledger.ts';
import type { Origins } from '../imported/origins.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { countedIn } from './base.ts';
import { titleOfBranch } from './branch-title.ts';
import { ConversationWriter } from './conversation-writer.ts';
import { countedTree } from './counted-tree.ts';
import { alikeBehindBase, forkedFrom } from './forked-from.ts';
import type { KnownBeginnings } from './known-beginnings.ts';
import { branchesWith, commonWithParent } from './left-branches.ts';
import { newerThanBranch } from './older-copy.ts';
import { nothing, type Reconciled } from './reconciled.ts';
import type { From, Writing } from './writing.ts';

/** How the conversations of a plan are written. */
interface WritingAll {
  readonly known: KnownBeginnings;
  readonly rewritten: boolean | ((conversation: ConversationPlan) => boolean);
  readonly as: string | undefined;
  readonly origins: Origins;
  readonly erasedElsewhere: ErasedInPlan | undefined;
  readonly onAdded: OnProgress | undefined;
  /** Called with what was written of a conversation, as soon as it is. */
  readonly onWritten: (one: Reconciled) => void;
}

/** What was written of a conversation. */
interface Written {
  readonly receipt: Reconciled;
  readonly title: string | undefined;
  /** What its session showed before. */
  readonly before: readonly Shown[];
  /** What a branch of it begins with, where the session shows all of it by now, and nothing else. */
  readonly begun: Pick<Begun, 'id' | 'of'> | undefined;
}

/**
 * Writes the conversations of a plan, each once: in the order of the plan, but for branches that have what a session leaves, which
 * come before that is rewound.
 */
export class PlanWriter {
  readonly #store: HomeStore;
  readonly #plan: ImportPlan;
  readonly #writing: WritingAll;
  /** What the conversations of the source have counted here. */
  readonly #tree: SharedCounts | undefined;
  readonly #given: ReadonlyMap<string, ConversationPlan>;
  readonly #written = new Map<string, Written>();

  constructor(store: HomeStore, plan: ImportPlan, writing: WritingAll) {
    [this.#store, this.#plan, this.#writing] = [store, plan, writing];
    this.#tree = countedTree(store, plan);
    this.#given = new Map(plan.conversations.map((one) => [one.key, one]));
  }

  /** What was written of each conversation, in the order of the plan. */
  get done(): readonly Reconciled[] {
    return [...this.#given.keys()].flatMap((key) => this.#written.get(key)?.receipt ?? []);
  }

  /** Where a conversation was written; undefined where that was refused. */
  placed(key: string): Reconciled | undefined {
    const receipt = this.#written.get(key)?.receipt;
    return receipt?.refused === undefined ? receipt : undefined;
  }

  /** The title that a conversation has, as it is written. */
  titleOf(key: string): string | undefined {
    return this.#written.get(key)?.title;
  }

  write(given: ConversationPlan): void {
    if (this.#written.has(given.key)) return;
    const { known, as, origins } = this.#writing;
    const conversation = known.behind(given);
    const over = this.placed(given.parent?.key ?? '');
    if (over !== undefined && as === undefined)
      deleteMisplaced(this.#store, this.#plan, conversation, { written: over.session, origins });
    this.#write(given, conversation);
  }

  /**
   * Writes the branches that have what a session leaves. One that shows no more of that than its parent will, such as one behind an
   * answer of which only a part had come, is forked behind what comes now: what both have is then written once. Returns whether it
   * wrote any.
   */
  #writeLeft(parent: ConversationPlan, session: string, left: ReadonlySet<string>): boolean {
    const { size } = this.#written;
    for (const given of branchesWith(this.#plan, parent, left)) {
      if (this.#written.has(given.key)) continue;
      const conversation = this.#writing.known.behind(given);
      const from = { session, earlier: [], isLeft: true } as const;
      const shared = sharedWith(this.#store, { ...from, conversation }).length;
      if (shared > this.#commonOf(given, conversation)) this.#write(given, conversation, from);
    }
    return this.#written.size > size;
  }

  /** @param left the session that has it until now, of a branch that is written first */
  #write(given: ConversationPlan, conversation: ConversationPlan, left?: From): void {
    const [store, { known, rewritten, onAdded }] = [this.#store, this.#writing];
    const { as, origins, erasedElsewhere } = this.#writing;
    const { key, kind, base } = conversation;
    const isOlder =
      kind === 'branch' && base === undefined && this.placed(given.parent?.key ?? '')?.isBehind === true;
    const newer = isOlder
      ? newerThanBranch(store, { plan: this.#plan, conversation, as, origins })
      : undefined;
    if (newer !== undefined) {
      const receipt = { conversation: key, session: newer, ...nothing, isBehind: true } as const;
      this.#written.set(key, { receipt, title: undefined, before: [], begun: undefined });
      return;
    }
    const common = kind === 'branch' ? this.#commonOf(given, conversation) : undefined;
    const writing: Writing = {
      ...{ plan: this.#plan, conversation, tree: this.#tree, erasedElsewhere, common },
      ...{ from: this.#from(conversation, left), begun: this.#begun(conversation, common) },
      counted: known.exportOf === undefined ? new Map() : countedIn(conversation, known.exportOf),
      rewritten: typeof rewritten === 'function' ? rewritten(conversation) : rewritten,
      onLeaving: (session, keys) => this.#writeLeft(conversation, session, keys),
      ...{ as, origins, onAdded },
    };
    const writer = new ConversationWriter(store, writing);
    const receipt = writer.write();
    this.#writing.onWritten(receipt);
    const id = this.#noted(conversation, receipt);
    const isWhole = id !== undefined && receipt.isBehind !== true && base === undefined;
    const title = conversation.title ?? this.#titleOfBranch(writing, receipt);
    this.#written.set(key, {
      ...{ receipt, title, before: writer.shown },
      begun: isWhole ? { id, of: conversation.spine.length } : undefined,
    });
  }

  /** That of a branch which its source gives none. What an older copy of the source has says nothing of what is there. */
  #titleOfBranch(writing: Writing, { session, created, refused, isBehind }: Reconciled): string | undefined {
    const over = this.#written.get(writing.conversation.parent?.key ?? '')?.receipt;
    if (created || refused !== undefined || isBehind === true || over?.isBehind === true) return undefined;
    return titleOfBranch(this.#store, writing, session);
  }

  /** The session from which it is forked: that of its parent, unless another one has more of it. */
  #from(conversation: ConversationPlan, left: From | undefined): From | undefined {
    const { kind, parent } = conversation;
    const over = kind === 'cleared' ? undefined : this.#written.get(parent?.key ?? '');
    const above = over && this.#above(conversation, over);
    const isBranchOfExport = kind === 'branch' && this.#writing.known.exported !== undefined;
    const { as, origins } = this.#writing;
    const mayBeCopy = as === undefined && (kind === 'main' || isBranchOfExport);
    const like = mayBeCopy ? alikeBehindBase(this.#store, this.#plan, conversation, origins) : undefined;
    return forkedFrom(this.#store, conversation, [above, left, like]);
  }

  #above(conversation: ConversationPlan, { receipt, before }: Written): From {
    const session = callerOf(this.#store, this.#plan, conversation, receipt.session);
    return { ...receipt, session, earlier: session === receipt.session ? before : [] };
  }

  #begun({ base, parent }: ConversationPlan, common: number | undefined): Begun | undefined {
    const begun = this.#written.get(parent?.key ?? '')?.begun;
    if (begun === undefined || common === undefined || base !== undefined) return undefined;
    return { ...begun, count: common };
  }

  #commonOf(given: ConversationPlan, conversation: ConversationPlan): number {
    const count = commonWithParent(given, this.#given.get(given.parent?.key ?? ''), conversation);
    return this.#writing.known.commonOf(conversation, count);
  }

  /** Tells those that count, and look for copies, what was written; returns the id of the session. */
  #noted({ base }: ConversationPlan, { refused, session }: Reconciled): string | undefined {
    const id = refused === undefined ? this.#store.sessions.find(session)?.id : undefined;
    if (id === undefined) return undefined;
    const copies = copiesIn(this.#store);
    copies.wrote(id);
    if (this.#tree !== undefined && (base !== undefined || copies.sourceOf(id) !== undefined))
      this.#tree.add(id);
    return id;
  }
}
