/**
 * Transcripts on tapes: `reconcile.ts` makes the sessions of a home read as a plan does, and `conversation-writer.ts`
 * writes one conversation of it, behind what the session has of it (`read-tape.ts`, `base.ts`, `parted.ts`).
 * `reconcile-end.ts` writes the end of a file that grew, without reading the rest. What others forgot or erased meanwhile is
 * erased here, too (`forgotten-meanwhile.ts`, `erased-meanwhile.ts`). Imports `edges` and what lies below.
 */

import type { Draft, HomeStore, Seq } from '@tapedeck/tape';
import { titleLine } from '@tapedeck/tape/internal';
import type { OnProgress } from '@tapedeck/tape/store';
import { beginsLike } from '../copies/begins-like.ts';
import { beginningIn, behindCompaction } from '../copies/behind-compaction.ts';
import { copiesIn } from '../copies/copies.ts';
import { type ErasedInPlan, erasedIn } from '../copies/erased-in-plan.ts';
import type { Begun } from '../copies/family.ts';
import { behindResumed, type Resumed, resumedFrom } from '../copies/resumed.ts';
import { recordDerived } from '../edges/derived.ts';
import { linkSessions } from '../edges/edges.ts';
import { sharedWith } from '../edges/fork-of.ts';
import { mergeEnded } from '../edges/merge-ended.ts';
import { deleteMisplaced } from '../edges/misplaced.ts';
import { deleteReturned } from '../edges/returned.ts';
import { saveTitle } from '../edges/titles.ts';
import type { Cleaner } from '../imported/cleaner.ts';
import { continuedFrom } from '../imported/copy-notes.ts';
import { refusalOf } from '../imported/forgotten.ts';
import type { Shown } from '../imported/imported.ts';
import { SharedCounts } from '../imported/ledger.ts';
import { Origins, sessionOf, sourceOf } from '../imported/origins.ts';
import { cleaned } from '../imported/raw-form.ts';
import { changedLater } from '../plan/later-draft.ts';
import type { Base, ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { countedIn, type Exported, exportedOf, hasBase, withBase } from './base.ts';
import { ConversationWriter } from './conversation-writer.ts';
import { eraseErasedMeanwhile } from './erased-meanwhile.ts';
import { fitting } from './fitting.ts';
import { forgottenMeanwhile } from './forgotten-meanwhile.ts';
import { branchWith, togetherWith } from './forked-first.ts';
import { nothing, type Reconciled } from './reconciled.ts';
import type { From } from './writing.ts';

/** How an import is written. */
export interface ReconcileOptions {
  /** Replaces what has the form of a secret, before anything is compared. */
  readonly clean?: Cleaner;
  /**
   * Whether the source no longer begins with what was read of it. What it has now in place of that becomes a session of its
   * own, forked where the two differ.
   */
  readonly rewritten?: boolean | ((conversation: ConversationPlan) => boolean);
  /**
   * The name of the session of the main conversation, with which those of its branches begin. The sessions are made even if
   * the source has others here already.
   */
  readonly as?: string;
  /** Given by who imports many plans: reads the home once. */
  readonly origins?: Origins;
  /** Called with the entries of a new session that were added, some times while they are. */
  readonly onAdded?: OnProgress;
}

/**
 * Makes the sessions of a home read as the conversations of a plan: creates those that are missing, parents first, appends
 * what is new to the others, and merges the subagents whose results came back. Each session appears, and changes, in one
 * transaction, by what its tape has: no reader sees a part of it, and an import that was killed, or ran twice at once, ends as
 * one that ran alone.
 *
 * A branch is forked where it leaves its parent, before or after the parent changed, so that what the parent has of it is
 * not written again. A session that went on here is not rewound: what its source has beyond the point where the two part
 * becomes a session beside it. One that is archived, deleted or in use takes nothing, and says so in its receipt.
 * @throws TAPE_EXISTS when a session has the name of `as` that is no import of this source
 */
export function reconcile(
  store: HomeStore,
  plan: ImportPlan,
  { clean, rewritten = false, as, origins = new Origins(store), onAdded }: ReconcileOptions = {},
): readonly Reconciled[] {
  const copies = copiesIn(store);
  copies.begin();
  const forgotten = refusalOf(store, plan, { as, origins });
  if (forgotten !== undefined)
    return plan.conversations.map(({ key }) => ({ conversation: key, ...forgotten, ...nothing }));
  const done = new Map<string, Reconciled>();
  const before = new Map<string, readonly Shown[]>();
  const heads = new Map<string, Seq>();
  const found = exportedOf(store, plan);
  const exported = found !== undefined && isBased(store, plan, found, { as, origins }) ? found : undefined;
  const titles = new Map<string, string | undefined>();
  const beginning = as === undefined ? beginningIn(store, plan, origins) : undefined;
  const bases = new Map<string, Base>();
  let resumed: Resumed | undefined;
  const tree = treeOf(store, plan);
  const changes = store.changesOfOthers();
  const erasedElsewhere = as === undefined ? erasedIn(store, plan, clean) : undefined;
  // Of one conversation alone nothing is shared.
  const isTree = plan.conversations.some(({ kind }) => kind === 'branch');
  const made = isTree ? new Map<Draft, Draft>() : undefined;
  const spines = new Map<string, Spine>();
  /** What the plan has of each conversation, prepared, where nothing was taken from its beginning. */
  const wholes = new Map<string, readonly Draft[]>();
  const placed = (key: string) => (done.get(key)?.refused === undefined ? done.get(key) : undefined);
  const firstAgent = plan.conversations.find(({ kind }) => kind === 'subagent');
  const count = firstAgent === undefined ? undefined : plan.conversations.indexOf(firstAgent);
  const own = plan.conversations.slice(0, count);
  const linkAll = (conversations: readonly ConversationPlan[]) =>
    linkSessions(store, plan, placed, { conversations, copies: as === undefined });
  // Which branches are left says from which session a subagent is forked.
  const placeOwn = () => {
    linkAll(own);
    const sessions = own.flatMap(({ key }) => placed(key)?.session ?? []);
    if (as === undefined) deleteReturned(store, plan, sessions, clean);
  };
  const planned = (given: ConversationPlan): ConversationPlan => {
    const known = exported === undefined ? given : withBase(given, exported);
    const begun = known.base === undefined ? wholes.get(known.parent?.key ?? '') : undefined;
    const whole = withoutErasedTitle(prepared(known, clean, made, begun), erasedElsewhere);
    if (isTree && known.base === undefined) wholes.set(whole.key, whole.spine);
    // Who names the session wants another one beside those that are here.
    if (whole.kind === 'main' && as === undefined && whole.base === undefined && beginning === undefined)
      resumed = resumedFrom(store, plan, whole, origins);
    if (beginning !== undefined) return behindCompaction(whole, beginning);
    const isOwn = whole.kind === 'main' || whole.kind === 'branch';
    return resumed !== undefined && isOwn ? behindResumed(store, plan, whole, resumed) : whole;
  };
  const forkedFirst = new Map<string, Reconciled>();
  /** Of what continues another session, or where records were erased, a branch is found once its session is rewound. */
  const isPlain = () =>
    [erasedElsewhere, exported, beginning, resumed].every((one) => one === undefined) && as === undefined;
  /** What a session shows would be in none between its rewind and the fork of the branch that has it: that comes first. */
  const forkFirst = (parent: ConversationPlan, session: string, left: string): void => {
    const given = branchWith(plan, parent, left);
    if (given === undefined || !isPlain()) return;
    const branch = planned(given);
    const common = begunOf(branch, { id: '', spine: parent.spine })?.count ?? 0;
    const from = { session, earlier: [] };
    const writer = writerOf(branch, from, common);
    // It may have that elsewhere, behind what comes now.
    const hasMore = sharedWith(store, { ...from, conversation: branch }).length > common;
    if (!hasMore || writer.there.length > 0) return;
    const written = writer.write();
    forkedFirst.set(given.key, written);
    wrote(given, written);
  };
  const writerOf = (conversation: ConversationPlan, from: From | undefined, common?: number) =>
    new ConversationWriter(store, {
      ...{ plan, conversation, from, origins, tree, erasedElsewhere, common },
      begun: begunOf(conversation, spines.get(conversation.parent?.key ?? '')),
      counted: found === undefined ? new Map() : countedIn(conversation, found),
      rewritten: typeof rewritten === 'function' ? rewritten(conversation) : rewritten,
      onLeaving: (session, left) => forkFirst(conversation, session, left),
      ...{ as, onAdded },
    });
  const wrote = ({ base }: ConversationPlan, { refused, session }: Reconciled): string | undefined => {
    const id = refused === undefined ? store.sessions.find(session)?.id : undefined;
    if (id === undefined) return undefined;
    copies.wrote(id);
    if (tree !== undefined && (base !== undefined || copies.sourceOf(id) !== undefined)) tree.add(id);
    return id;
  };
  for (const given of plan.conversations) {
    if (given === firstAgent) placeOwn();
    const conversation = planned(given);
    const over = done.get(conversation.parent?.key ?? '');
    const above =
      over === undefined || conversation.kind === 'cleared'
        ? undefined
        : { ...over, earlier: before.get(over.conversation) ?? [] };
    const mayBeCopy = conversation.kind === 'main' && as === undefined;
    const isBranch = conversation.kind === 'branch' && exported !== undefined && as === undefined;
    const like = mayBeCopy || isBranch ? likeIt(store, plan, conversation) : undefined;
    const shares = (one: From) => sharedWith(store, { ...one, conversation }).length;
    const from = above === undefined || (like !== undefined && shares(like) > shares(above)) ? like : above;
    if (over !== undefined && over.refused === undefined && as === undefined)
      deleteMisplaced(store, plan, conversation, { written: over.session, origins });
    const writer = writerOf(conversation, from);
    const first = forkedFirst.get(conversation.key);
    titles.set(conversation.key, conversation.title);
    if (conversation.base !== undefined) bases.set(conversation.key, conversation.base);
    if (first === undefined) for (const { id, head } of writer.there) heads.set(id, heads.get(id) ?? head);
    const written = togetherWith(first, writer.write());
    before.set(conversation.key, writer.shown);
    done.set(conversation.key, written);
    const id = wrote(conversation, written);
    const isWhole = written.isBehind !== true && conversation.base === undefined;
    if (id !== undefined && isWhole && isTree)
      spines.set(conversation.key, { id, spine: conversation.spine });
  }
  if (firstAgent === undefined) placeOwn();
  linkAll(plan.conversations.slice(own.length));
  // Titles and reports are content of the source, too.
  for (const { conversation, session, refused, created, added } of done.values()) {
    // An export that no program went on with says nothing of the session from which it was made.
    const isExport = exported !== undefined && !created && added === 0;
    if (refused !== undefined || isExport) continue;
    if (refusalOf(store, plan, { as, origins }) !== undefined) break;
    saveTitle(store, session, titles.get(conversation));
    // The session that has the base, or what precedes the compaction, says how that follows.
    const derived = plan.derived.filter(
      ({ of }) =>
        bases.get(conversation)?.places.has(of) !== true &&
        beginning?.kept.some(({ key }) => key === of) !== true,
    );
    recordDerived(store, session, { derived }, conversation);
  }
  if (refusalOf(store, plan, { as, origins }) === undefined)
    mergeEnded(store, plan, (key) => placed(key)?.session);
  const left = forgottenMeanwhile(store, plan, { done, as, origins });
  if (left === undefined && as === undefined && store.changesOfOthers() !== changes)
    eraseErasedMeanwhile(store, plan, { done, heads, clean });
  copies.end();
  return left ?? [...done.values()];
}

/** A conversation without its title, if that quotes what was erased. */
function withoutErasedTitle(
  conversation: ConversationPlan,
  erased: Pick<ErasedInPlan, 'hasTitle'> | undefined,
): ConversationPlan {
  const { title, ...others } = conversation;
  return title !== undefined && erased?.hasTitle(title) === true ? others : conversation;
}

/** A session, and all that it shows. */
interface Spine {
  readonly id: string;
  readonly spine: readonly Draft[];
}

/** What a branch has in common with its parent: the same drafts. */
function begunOf({ kind, spine, base }: ConversationPlan, parent: Spine | undefined): Begun | undefined {
  if (kind !== 'branch' || base !== undefined || parent === undefined) return undefined;
  const { length } = parent.spine;
  let count = 0;
  while (count < length && count < spine.length && spine[count] === parent.spine[count]) count += 1;
  return { id: parent.id, of: length, count };
}

/** What the conversations of a source have counted here; undefined where it has one alone. */
function treeOf(store: HomeStore, { format, session, conversations }: ImportPlan): SharedCounts | undefined {
  const copies = copiesIn(store);
  const name = sessionOf(store, { format, session });
  const main = name === undefined ? undefined : store.sessions.find(name);
  const under = main === undefined ? [] : store.sessions.list({ under: main.id, kind: 'session', all: true });
  // What continues an export is forked from that, as its branches are.
  const branches = copies.branchesOf(sourceOf(format, session)).map(([id]) => id);
  const others = new Set([...under.map(({ id }) => id), ...branches]);
  const isAlone = others.size === 0 && !conversations.some(({ kind }) => kind === 'branch');
  if (isAlone) return undefined;
  const counts = new SharedCounts(copies.ledger);
  for (const id of [...(main === undefined ? [] : [main.id]), ...others]) counts.add(id);
  return counts;
}

/**
 * Whether the session of a plan, if it is there already, has what the exported session has of it, or was forked from that
 * elsewhere.
 */
function isBased(
  store: HomeStore,
  { format, session, conversations: [main] }: ImportPlan,
  exported: Exported,
  { as, origins }: { readonly as: string | undefined; readonly origins: Origins },
): boolean {
  const base = main && withBase(main, exported).base;
  if (base === undefined) return true;
  const origin = JSON.stringify({ format, session });
  const own = as ?? sessionOf(store, { format, session }) ?? origins.find(origin)?.session;
  const info = own === undefined ? undefined : store.sessions.find(own);
  return (
    info === undefined || hasBase(store, info.id, base) || continuedFrom(store, info.id) === exported.session
  );
}

/** The session from which a new conversation with a base can be forked, since both begin alike. */
function likeIt(store: HomeStore, plan: ImportPlan, conversation: ConversationPlan): From | undefined {
  const { base, name } = conversation;
  if (base === undefined || store.sessions.find(name) !== undefined) return undefined;
  const session = beginsLike(store, plan, { ...conversation, base });
  return session === undefined ? undefined : { session, earlier: [] };
}

/**
 * A conversation as it is written, and compared with what was written of it.
 * @param made what was made of drafts that conversations share
 * @param above what was made of the spine of its parent
 */
export function prepared(
  conversation: ConversationPlan,
  clean: Cleaner | undefined,
  made?: Map<Draft, Draft>,
  above?: readonly Draft[],
): ConversationPlan {
  const { title: given, ...rest } = conversation;
  const { spine, asides, shared = 0 } = rest;
  // As one line from the beginning: a title that comes later is written so, too.
  const title = given === undefined ? undefined : titleLine(clean?.text(given) ?? given);
  const begun = above?.slice(0, shared) ?? [];
  const prepare = (draft: Draft) => {
    const fits = fitting(draft);
    return clean === undefined ? fits : cleaned(fits, clean);
  };
  const prepareOnce = (draft: Draft): Draft => {
    const known = made?.get(draft);
    if (known !== undefined) return known;
    const one = changedLater(draft, prepare);
    made?.set(draft, one);
    return one;
  };
  return {
    ...rest,
    ...(title !== undefined && { title }),
    spine: [...begun, ...spine.slice(begun.length).map(prepareOnce)],
    asides: asides.map((one) => {
      const draft = changedLater(one.draft, prepare);
      return draft === one.draft ? one : { draft, after: one.after };
    }),
  };
}
