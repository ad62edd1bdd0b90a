import type { Draft, HomeStore } from '@tapedeck/tape';
import type { Cleaner } from '../imported/cleaner.ts';
import { asideLeft, isErased } from '../imported/erased.ts';
import { QuotedTexts } from '../imported/quoted-texts.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import type { ImportPlan, SaidIn } from '../plan/plan.ts';
import { copiesIn } from './copies.ts';

/** What of a plan was erased in sessions of a home, and what else in it quotes that. */
export interface ErasedInPlan {
  /** Whether what a conversation has in a place was erased. */
  has(conversation: SaidIn, place: number): boolean;
  /** Whether a record beside a conversation was erased, or quotes what was. */
  hasAside(draft: Draft): boolean;
  /** Whether a title quotes what was erased. */
  hasTitle(title: string): boolean;
}

/** What of a plan was erased in sessions of a home; undefined for a home in which nothing was. */
export function erasedIn(
  store: HomeStore,
  plan: ImportPlan,
  clean: Cleaner | undefined,
): ErasedInPlan | undefined {
  const records = copiesIn(store).erased();
  const exported = exportedKeys(store, plan);
  if (records.isEmpty && exported.size === 0) return undefined;
  const has = (conversation: SaidIn, place: number) =>
    exported.has(conversation.spine[place]?.key ?? '') || records.has(conversation, place);
  let known: QuotedTexts | undefined;
  const texts = () => {
    known ??= textsOf(has, plan, clean);
    return known;
  };
  return {
    has,
    hasAside: (draft) => records.hasKey(draft.key ?? '') || texts().areIn(wholeDraft(draft).payload),
    hasTitle: (title) => texts().has(title),
  };
}

/** The keys of what an export wrote of entries that were erased since: where a file lacks what was before one, it is taken again. */
function exportedKeys(store: HomeStore, { exportOf, conversations }: ImportPlan): ReadonlySet<string> {
  const found = exportOf === undefined ? undefined : store.sessions.find(exportOf);
  if (found === undefined || found.id !== exportOf) return new Set();
  const erased = new Set<string>();
  for (const entry of store.entries.read(found.id)) if (isErased(entry)) erased.add(entry.hash);
  const keysIn = (all: ReadonlyMap<string, string>) =>
    [...all].flatMap(([key, hash]) => (erased.has(hash) ? key : []));
  return new Set(conversations.flatMap(({ exported }) => keysIn(exported ?? new Map())));
}

/** The texts of what was erased, as the source still has them, with their secrets and without. */
function textsOf(
  has: ErasedInPlan['has'],
  { conversations }: ImportPlan,
  clean: Cleaner | undefined,
): QuotedTexts {
  const texts = new QuotedTexts();
  const add = (draft: Draft) => {
    const { payload } = wholeDraft(draft);
    texts.addSaid(payload);
    if (clean !== undefined) texts.addSaid(clean.draft({ kind: draft.kind, payload }).payload);
  };
  for (const conversation of conversations) {
    const isGone = knownOnce((place) => has(conversation, place));
    const { spine, asides, shared = 0 } = conversation;
    for (let place = shared; place < spine.length; place += 1) {
      const draft = spine[place];
      if (draft !== undefined && isGone(place)) add(draft);
    }
    for (const one of asides) if (asideLeft(one, conversation, isGone) !== one.draft) add(one.draft);
  }
  return texts;
}

function knownOnce(isIt: (place: number) => boolean): (place: number) => boolean {
  const known = new Map<number, boolean>();
  return (place) => {
    const found = known.get(place) ?? isIt(place);
    known.set(place, found);
    return found;
  };
}
