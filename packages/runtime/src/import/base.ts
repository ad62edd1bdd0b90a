import type { Draft, Entry, HomeStore, JsonObject, Seq } from '@tapedeck/tape';
import {
  nextBatch,
  type OpenBatch,
  recordedUsage,
  renderEntry,
  renderState,
  select,
} from '@tapedeck/tape/internal';
import { isSaid } from '../imported/imported.ts';
import { sessionWithId } from '../imported/of-realm.ts';
import type { Base, ConversationPlan, ImportPlan } from '../plan/plan.ts';

/** The entries of an exported session, by their hashes. */
export interface Exported {
  readonly session: string;
  readonly seqs: ReadonlyMap<string, Seq>;
  /** The tokens that were counted for answers. */
  readonly usages: ReadonlyMap<string, JsonObject>;
  /** What it shows at a position, or what a fork there would show. */
  readonly viewAt: (at: Seq, isFork: boolean) => ViewAt;
  /** The last position up to one at which no call is open: it can be forked there. */
  readonly settledAt: (at: Seq) => Seq;
  /** The last position before the next thing that is said behind one. */
  readonly lastBefore: (at: Seq) => Seq;
}

/** Calls and their results: no fork lies between their ends. */
interface Batch {
  readonly from: Seq;
  readonly to: Seq;
}

/** What a session shows at a position. */
interface ViewAt {
  /** The places in the view, by the positions on the tape: what a fork was given begins it, wherever it stands. */
  readonly shown: ReadonlyMap<Seq, number>;
  /** What of that the export has a record of. */
  readonly said: readonly Seq[];
}

/** Finds the session of which a plan is the continuation; undefined where the home does not have it. */
export function exportedOf(store: HomeStore, plan: ImportPlan): Exported | undefined {
  const { exportOf, passedOver = new Set() } = plan;
  const found = sessionWithId(store, exportOf);
  if (found === undefined) return undefined;
  const wanted = new Set(plan.conversations.flatMap(({ exported = new Map() }) => [...exported.values()]));
  const seqs = new Map<string, Seq>();
  const usages = new Map<string, JsonObject>();
  const batches: Batch[] = [];
  let open: OpenBatch | undefined;
  for (const entry of store.entries.read(found.id)) {
    const { hash, seq, meta } = entry;
    const next = nextBatch(open, entry);
    if (open !== undefined && next === undefined) batches.push({ from: open.from, to: seq });
    open = next;
    if (!wanted.has(hash)) continue;
    seqs.set(hash, seq);
    const usage = recordedUsage(meta);
    if (usage === undefined) continue;
    const { input, output, reasoning, cacheRead, cacheWrite } = usage;
    // A transcript has no place for tokens of reasoning alone.
    usages.set(hash, { input, output: output + reasoning, cacheRead, cacheWrite });
  }
  if (open !== undefined) batches.push({ from: open.from, to: Number.POSITIVE_INFINITY });
  return {
    session: found.id,
    ...{ seqs, usages },
    settledAt: (at) => batches.find(({ from, to }) => from < at && at < to)?.from ?? at,
    viewAt: (at, isFork) => {
      const all = [...store.views.entries(found.id, { at })];
      // A fork does not keep the task of its parent behind a boundary.
      const seen = isFork
        ? all.map((entry) => (entry.name === 'intention' ? { ...entry, inherited: true } : entry))
        : all;
      return viewOf(seen, passedOver);
    },
    lastBefore: (at) => {
      let last = at;
      for (const entry of store.entries.read(found.id, { from: at + 1 })) {
        if (isSaid(entry)) break;
        last = entry.seq;
      }
      return last;
    },
  };
}

function viewOf(all: readonly Entry[], passedOver: ReadonlySet<string>): ViewAt {
  const { start, entries } = select(all, 'last-boundary');
  const begun = start === undefined ? [] : [start];
  const isBegun = start?.mark === 'boundary' || renderState(start) !== undefined;
  const messages = entries.filter((entry) => renderEntry(entry)?.type === 'message');
  const said = [...(isBegun ? begun : []), ...messages].filter(({ hash }) => !passedOver.has(hash));
  return {
    shown: new Map([...begun, ...entries].map(({ seq }, place) => [seq, place])),
    said: said.map(({ seq }) => seq),
  };
}

/**
 * A conversation without what the home has of it: the drafts that it begins with, where their entries are all that the
 * exported session showed up to there, and all records that only the export wrote. What is behind a hole in that is an own
 * part of the conversation, so that its view shows what the file has. Pure.
 */
export function withBase(conversation: ConversationPlan, exported: Exported): ConversationPlan {
  const { spine, asides, keeps, exported: hashes = new Map<string, string>() } = conversation;
  const { seqs, viewAt, settledAt, lastBefore } = exported;
  // An export that was not continued is all there.
  const isWhole = [...spine, ...asides.map(({ draft }) => draft)].every(({ key = '' }) => {
    const hash = hashes.get(key);
    return hash === '' || seqs.has(hash ?? '');
  });
  let known = isWhole ? spine.length : cutUpTo(knownOf(spine, { exported: hashes, seqs }), conversation);
  while (known > 0) {
    const begun = spine.slice(0, known).map((draft) => ({
      ...{ draft, key: draft.key ?? '' },
      seq: seqs.get(hashes.get(draft.key ?? '') ?? '') ?? 0,
    }));
    const last = Math.max(...begun.map(({ seq }) => seq));
    const settled = isWhole ? last : settledAt(last);
    if (settled < last) {
      known = cutUpTo(
        begun.findIndex(({ seq }) => seq > settled),
        conversation,
      );
      continue;
    }
    const whole = wholeOf(begun, keeps, viewAt(last, !isWhole));
    if (whole === known) return behind(conversation, begun, { exported, cut: last });
    // What was left out of the session behind its last message, before it was exported, is left out of the file.
    const later = lastBefore(last);
    if (wholeOf(begun, keeps, viewAt(later, !isWhole)) === known)
      return behind(conversation, begun, { exported, cut: later });
    known = cutUpTo(whole, conversation);
  }
  return conversation;
}

/**
 * The last place up to some number of drafts at which a conversation can be cut: not between a call and its last result, and not
 * between what an entry made necessary and its own draft.
 */
function cutUpTo(known: number, { spine, exported }: ConversationPlan): number {
  const hashAt = (i: number) => exported?.get(spine[i]?.key ?? '') || undefined;
  const isWithin = (i: number) =>
    spine[i]?.kind === 'tool-result' || (hashAt(i) !== undefined && hashAt(i) === hashAt(i - 1));
  let at = known;
  while (at > 0 && isWithin(at)) at -= 1;
  return at;
}

/** The tokens that an exported session has counted for drafts, by their keys. Pure. */
export function countedIn(
  { exported: hashes = new Map() }: ConversationPlan,
  { usages }: Exported,
): ReadonlyMap<string, JsonObject> {
  return new Map(
    [...hashes].flatMap(([key, hash]) => {
      const usage = usages.get(hash);
      return usage === undefined ? [] : [[key, usage] as const];
    }),
  );
}

/** Whether a session has what the base of a conversation names: it is that session, or was forked from it behind that. */
export function hasBase(store: HomeStore, session: string, { session: id, cut }: Base): boolean {
  let at = store.sessions.find(session);
  while (at !== undefined && at.id !== id && at.base >= cut)
    at = at.parentId === undefined ? undefined : store.sessions.find(at.parentId);
  return at?.id === id;
}

/** A draft of which the exported session has the entry. */
interface KnownDraft {
  readonly draft: Draft;
  readonly key: string;
  readonly seq: Seq;
}

/** The drafts and records of a conversation that are behind those that it begins with. */
function behind(
  conversation: ConversationPlan,
  begun: readonly KnownDraft[],
  { exported: { session, seqs }, cut }: { readonly exported: Exported; readonly cut: Seq },
): ConversationPlan {
  const { spine, settled, asides, exported: hashes = new Map<string, string>() } = conversation;
  const known = begun.length;
  const isHere = (hash: string | undefined, after: number) =>
    hash === '' || (hash !== undefined && seqs.has(hash) && after <= known);
  return {
    ...conversation,
    base: { session, cut, places: new Map(begun.map(({ key, seq }) => [key, seq])) },
    spine: spine.slice(known),
    settled: Math.max(0, settled - known),
    asides: asides
      .filter(({ draft: { key = '' }, after }) => !isHere(hashes.get(key), after))
      .map(({ draft, after }) => ({ draft, after: Math.max(0, after - known) })),
  };
}

/** How many drafts precede the first one that the view of the exported session would not have in this place. */
function wholeOf(
  begun: readonly KnownDraft[],
  keeps: ConversationPlan['keeps'],
  { shown, said }: ViewAt,
): number {
  const boundary = begun.findLastIndex(({ draft }) => draft.mark === 'boundary');
  const kept = keeps.get(begun[boundary]?.key ?? '');
  const first = kept === undefined ? Math.max(boundary, 0) : begun.findIndex(({ key }) => key === kept);
  const has = new Set(begun.slice(first).map(({ seq }) => seq));
  const lacking = Math.min(...said.flatMap((seq) => (has.has(seq) ? [] : (shown.get(seq) ?? []))));
  let before = -1;
  for (const [i, { seq, draft }] of begun.entries()) {
    if (i < first) continue;
    const place = shown.get(seq);
    // What a boundary keeps in view is before it on the tape, wherever the file has it.
    const isLater = draft.kind === 'message' && i > boundary && seq > (begun[boundary]?.seq ?? 0);
    if (place === undefined || place > lacking || (isLater && place < before)) return i;
    if (isLater) before = place;
  }
  return Number.isFinite(lacking) ? begun.length - 1 : begun.length;
}

/**
 * How many drafts a conversation begins with whose entries are there. Where something follows, a call without a result ends
 * them: nothing can be forked behind it.
 */
function knownOf(
  spine: readonly Draft[],
  { exported, seqs }: { readonly exported: ReadonlyMap<string, string> } & Pick<Exported, 'seqs'>,
): number {
  let message = { at: 0, hash: '' };
  for (const [at, { key = '', kind }] of spine.entries()) {
    const hash = exported.get(key) ?? '';
    if (!seqs.has(hash)) return at;
    // The record of a result that the tape lacks was made of the message.
    if (kind === 'tool-result' && hash === message.hash) return message.at;
    if (kind === 'message') message = { at, hash };
  }
  return spine.length;
}
