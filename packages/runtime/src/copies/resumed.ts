import type { Draft, Entry, HomeStore, Seq, SessionInfo } from '@tapedeck/tape';
import { requestOf } from '../imported/api-call.ts';
import { answerOf, spineOf } from '../imported/change.ts';
import { asideLeft, isErased } from '../imported/erased.ts';
import {
  firstAnswer,
  firstKeyIn,
  firstShownIn,
  sayingIn,
  sayingLeft,
  sayingOf,
  waysOf,
} from '../imported/first-said.ts';
import { importedIn, type Shown, shownAt } from '../imported/imported.ts';
import { keyOf } from '../imported/keys.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import { type Origins, sourceNamedBy, sourceOf } from '../imported/origins.ts';
import { recalled } from '../imported/recalled.ts';
import { isStandIn } from '../plan/output.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { copiesIn } from './copies.ts';
import { begunMainOf } from './empty-main.ts';
import { keysInherited } from './inherited.ts';
import { resemblanceIn } from './resemblance.ts';

/** A session with which another one begins under other keys, and what it shows of that. */
export interface Resumed {
  readonly session: string;
  readonly shown: readonly Shown[];
  /** The key in it of what the other one, which was forked from it, inherits: by the key there. */
  readonly inherited: (key: string) => string | undefined;
}

/**
 * The session of which a main conversation begins with a copy under other ids, as old programs wrote one when they resumed a
 * session: nothing names that, but its first answer is that to the same request. Undefined for one that was here first.
 */
export function resumedFrom(
  store: HomeStore,
  plan: ImportPlan,
  conversation: ConversationPlan,
  origins: Origins,
): Resumed | undefined {
  const { spine } = conversation;
  const key = firstKeyIn(conversation);
  if (key === undefined) return undefined;
  const info = begunMainOf(store, plan, origins);
  if (info !== undefined) {
    // What it inherits is what it was found to be a copy of, unless it has been rewound to before that.
    const { message } = info.parentId === undefined ? {} : firstShownIn(store, info.id);
    if (info.parentId === undefined || message === undefined) return undefined;
    if (keyOf(message) === key && !inheritsResumed(store, info, message)) return undefined;
    const shown = spineOf(importedIn(store, info.id).shown).filter(({ seq }) => seq <= info.base);
    return { session: info.parentId, shown, inherited: keysInherited(store, plan, info.id) };
  }
  const answer = firstAnswer(spine);
  const request = answer && requestOf(answer);
  if (answer === undefined || request === undefined || copiesIn(store).mains(key).length > 0)
    return undefined;
  let best: Resumed | undefined;
  // The answer is common, too.
  let least = spine.indexOf(answer);
  const source = sourceNamedBy(store, plan)?.id;
  // Of several that have as much of it, the one that its records name: branches may have more of that.
  const candidates = copiesIn(store)
    .answeredFirst(request)
    .toSorted((a, b) => Number(b === source) - Number(a === source));
  const said = spine.values().map(waysOf);
  for (const [id, most] of resemblanceIn(store).beginning(said, candidates)) {
    if (most <= least) break;
    if (store.sessions.find(id)?.lifecycle !== 'active') continue;
    const imported = importedIn(store, id);
    // Some proxies give one id to all requests. Of what was erased, none is left.
    if (answerOf(answer, imported) === undefined && imported.erased.size === 0) continue;
    const shown = spineOf(imported.shown);
    const found = { session: id, shown, inherited: () => undefined };
    const { size } = commonPlaces(store, conversation, found);
    if (size > least) [best, least] = [found, size];
  }
  return best;
}

/** Whether a message of a session is one of a session that was resumed: an export keeps the ids of records that it changed. */
function inheritsResumed(store: HomeStore, info: SessionInfo, { seq }: Entry): boolean {
  return seq <= info.base && knownSessionsIn(store).of(info).beginning?.resumed !== undefined;
}

/** A conversation without what it begins with of the session that was resumed. */
export function behindResumed(
  store: HomeStore,
  plan: ImportPlan,
  conversation: ConversationPlan,
  resumed: Resumed,
): ConversationPlan {
  const { spine, settled, asides } = conversation;
  const from = inheritedBy(store, plan, conversation) ?? mostOf(store, plan, conversation, resumed);
  const places = commonPlaces(store, conversation, { ...resumed, ...from });
  const { size } = places;
  const cut = from.shown[size - 1]?.seq;
  if (cut === undefined) return conversation;
  const isGone = (place: number) => place < size && from.shown[place]?.content === undefined;
  return {
    ...conversation,
    base: { session: from.session, cut, places, isResumed: true, inherited: resumed.inherited },
    spine: spine.slice(size),
    settled: Math.max(0, settled - size),
    asides: asides.map((one) => ({
      draft: asideLeft(one, conversation, isGone),
      after: Math.max(0, one.after - size),
    })),
  };
}

/** A session of another source, and what it shows. */
type Inherited = Pick<Resumed, 'session' | 'shown'>;

/**
 * What a branch that is here already has of another source, which can be more than its main conversation has; undefined for
 * one that is not, or has nothing of that.
 */
function inheritedBy(
  store: HomeStore,
  { format, session }: ImportPlan,
  { kind, key }: ConversationPlan,
): Inherited | undefined {
  const copies = copiesIn(store);
  const source = sourceOf(format, session);
  const [id] = copies.tools.branchesOf(source).find(([, conversation]) => conversation === key) ?? [''];
  let at = kind === 'branch' ? store.sessions.find(id) : undefined;
  for (
    let cut = Number.POSITIVE_INFINITY;
    at?.parentId !== undefined;
    at = store.sessions.find(at.parentId)
  ) {
    cut = Math.min(cut, at.base);
    if (copies.sourceOf(at.parentId) !== source)
      return { session: at.parentId, shown: spineOf(shownAt(store, id, cut)) };
  }
  return undefined;
}

/** The session that has most of a new conversation: the one that was resumed or, of a branch, one that has more of it. */
function mostOf(
  store: HomeStore,
  { format, session: own }: ImportPlan,
  conversation: ConversationPlan,
  resumed: Resumed,
): Inherited {
  const { kind, spine } = conversation;
  const copies = copiesIn(store);
  let best: Inherited = resumed;
  let common = commonPlaces(store, conversation, resumed).size;
  const [first, next] = [spine, spine.slice(common)].map((drafts) => requestOf(firstAnswer(drafts) ?? {}));
  if (kind !== 'branch' || first === undefined || next === undefined) return best;
  for (const id of copies.answeredFirst(first)) {
    const hasNext =
      copies.ledger.read(id)?.answers.has(next) === true || importedIn(store, id).erased.size > 0;
    if (!hasNext || copies.sourceOf(id) === sourceOf(format, own)) continue;
    if (store.sessions.find(id)?.lifecycle !== 'active') continue;
    const shown = spineOf(importedIn(store, id).shown);
    const { size } = commonPlaces(store, conversation, { ...resumed, session: id, shown });
    if (size > common) [best, common] = [{ session: id, shown }, size];
  }
  return best;
}

/** The places of the drafts with which a conversation begins as a session does, whatever their keys are. */
function commonPlaces(
  store: HomeStore,
  { spine, keeps }: ConversationPlan,
  { session, shown, inherited }: Resumed,
): ReadonlyMap<string, Seq> {
  const places = new Map<string, Seq>();
  for (const entry of recalled(store, session, store.entries.read(session))) {
    const i = places.size;
    const [draft, next] = [spine[i], shown[i]];
    if (draft === undefined || next === undefined) break;
    if (entry.seq < next.seq) continue;
    const kept = keeps.get(draft.key ?? '');
    const isRefSame = entry.mark !== 'boundary' || entry.ref === places.get(kept ?? '');
    if (!isRefSame || !isCopy(draft, entry, inherited)) break;
    places.set(draft.key ?? '', entry.seq);
  }
  // Between a call and its last result nothing can be cut.
  const keys = [...places.keys()];
  for (let i = keys.length; i > 0 && isResult(spine[i], shown[i]); i -= 1) places.delete(keys[i - 1] ?? '');
  return places;
}

function isResult(...next: readonly (Pick<Draft, 'kind'> | undefined)[]): boolean {
  return next.some((one) => one?.kind === 'tool-result');
}

/**
 * Whether a draft says what an entry says, at the same time: the program works elsewhere and is newer by now.
 * Of one that was erased, its key is left, and when it was said; of what stands for a result, no source says when.
 */
function isCopy(draft: Draft, entry: Entry, inherited: Resumed['inherited']): boolean {
  if (!isErased(entry)) return sayingIn(draft) === sayingOf(entry);
  const [key, its] = [draft.key ?? '', keyOf(entry)];
  if (inherited(key) === its || (isStandIn(key) && isStandIn(its))) return true;
  return sayingLeft(draft) === sayingOf(entry);
}
