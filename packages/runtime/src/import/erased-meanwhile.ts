import type { Entry, HomeStore, Seq } from '@tapedeck/tape';
import { isObject, titleEvent } from '@tapedeck/tape/internal';
import { copiesIn } from '../copies/copies.ts';
import { type ErasedInPlan, erasedIn } from '../copies/erased-in-plan.ts';
import type { Cleaner } from '../imported/cleaner.ts';
import { asideLeft, isErased } from '../imported/erased.ts';
import { keyOf } from '../imported/imported.ts';
import { isOf } from '../imported/origins.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { text } from '../plan/text.ts';
import type { Reconciled } from './reconciled.ts';

const reason = 'it was erased elsewhere while it was imported';

/**
 * Erases what an import wrote of records that another process erased meanwhile, as it does when it forgets a source of which this
 * one is a copy: that process erases what is on tapes by then. An import that begins now would write nothing of them.
 * @param heads the sessions that were there before, as far as they had been written
 */
export function eraseErasedMeanwhile(
  store: HomeStore,
  plan: ImportPlan,
  {
    done,
    heads,
    clean,
  }: {
    readonly done: ReadonlyMap<string, Reconciled>;
    readonly heads: ReadonlyMap<string, Seq>;
    readonly clean: Cleaner | undefined;
  },
): void {
  copiesIn(store).begin();
  const erased = erasedIn(store, plan, clean);
  if (erased === undefined) return;
  for (const conversation of plan.conversations) {
    const info = store.sessions.find(done.get(conversation.key)?.session ?? '');
    // What continues an export may have nothing but the session of that.
    if (info === undefined || !isOf(store, info.id, { plan, conversation })) continue;
    const from = (heads.get(info.id) ?? 0) + 1;
    const gone = goneIn(conversation, erased);
    const isTitled = from === 1 && info.title !== undefined && erased.hasTitle(info.title);
    const seqs = [...store.entries.read(info.id, { own: true, from })].flatMap((entry, i) => {
      const isGone = (i === 0 && isTitled) || gone.has(keyOf(entry)) || quotes(entry, erased);
      return isGone && !isErased(entry) ? entry.seq : [];
    });
    if (seqs.length > 0) store.entries.redact(info.id, seqs, reason);
  }
}

/** The keys of what a conversation has of what was erased, and of what lies beside that. */
function goneIn(conversation: ConversationPlan, erased: ErasedInPlan): ReadonlySet<string> {
  const { spine, asides } = conversation;
  const places = new Set([...spine.keys()].filter((place) => erased.has(conversation, place)));
  const left = asides.filter((one) => {
    const isLeft = asideLeft(one, conversation, (place) => places.has(place)) === one.draft;
    return !isLeft || erased.hasAside(one.draft);
  });
  const gone = [...[...places].map((place) => spine[place]), ...left.map(({ draft }) => draft)];
  return new Set(gone.flatMap((draft) => draft?.key ?? []));
}

/** Whether an import wrote a title, or the report of a subagent, that quotes what was erased. */
function quotes({ kind, name, payload, meta }: Entry, erased: ErasedInPlan): boolean {
  if (name === titleEvent) return isObject(payload) && erased.hasTitle(text(payload.title) ?? '');
  return meta.source === 'merge' && erased.hasAside({ kind, payload });
}
