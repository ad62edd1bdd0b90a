import type { Draft, JsonObject, Seq } from '@tapedeck/tape';
import { isObject, storedTexts } from '@tapedeck/tape/internal';
import { LaterDraft, wholeDraft } from '../plan/later-draft.ts';
import { type ConversationPlan, isAside } from '../plan/plan.ts';
import { answersOf, apiCallOf } from './api-call.ts';
import { earlierForm } from './earlier-form.ts';
import { asideLeft, withoutContent } from './erased.ts';
import {
  type Counted,
  comparedMeta,
  contentMark,
  type Imported,
  most,
  type Records,
  type Shown,
} from './imported.ts';
import { keyAgain } from './keys.ts';
import { rawForm } from './raw-form.ts';

/** What has to be written so that a session reads as its plan. */
export interface Change {
  /** How many drafts of the spine it shows already. */
  readonly same: number;
  /** The position after which its readers see nothing any more. */
  readonly rewindTo?: Seq;
  readonly drafts: readonly Draft[];
  /** Answers whose tokens nothing counts yet, without what they say, which the tape has in another place. */
  readonly uncounted?: readonly Draft[];
}

/**
 * Compares a plan with what the tape has of it. What both begin with stays; where an entry differs, is missing or is one
 * too many, the tape is rewound to the last point before it at which no call is open, and the rest follows. Entries that no
 * view shows are written once, and never again, to one session of a conversation. Pure.
 * @param back where the tape showed more of the plan than it does: it is rewound to there
 */
export function changeOf(
  plan: ConversationPlan,
  tape: Imported,
  back?: Pick<Change, 'same' | 'rewindTo'>,
): Change {
  const { settled, asides } = plan;
  const { same, rewindTo } = back ?? sameOf(plan, tape);
  const spine = rewindTo === undefined && isRewound(plan, tape, same) ? [] : plan.spine;
  const fresh = asides.filter(({ draft }) => !isKept(draft, tape));
  const gone = new Map<number, boolean>();
  const isGone = (place: number) => {
    const known = gone.get(place) ?? isErasedIn(tape, plan, place);
    gone.set(place, known);
    return known;
  };
  const drafts: Draft[] = [];
  let aside = 0;
  const catchUp = (after: number): void => {
    for (let one = fresh[aside]; one !== undefined && one.after <= after; one = fresh[aside]) {
      const left = asideLeft(one, plan, isGone);
      const isErasedElsewhere = tape.erasedElsewhere?.hasAside(left) === true;
      drafts.push(writtenAgain(isErasedElsewhere ? withoutContent(left) : left, tape));
      aside += 1;
    }
  };
  for (let i = same; i < spine.length; i += 1) {
    // What may be rewound later hides no record: those follow what is settled.
    catchUp(i < settled ? i : Number.POSITIVE_INFINITY);
    const draft = spine[i];
    if (draft === undefined) continue;
    drafts.push(writtenAgain(isGone(i) ? withoutContent(draft) : draft, tape));
  }
  catchUp(Number.POSITIVE_INFINITY);
  const uncounted = (plan.uncounted ?? []).flatMap((draft) => countsOf(draft, tape));
  return { same, ...(rewindTo !== undefined && { rewindTo }), drafts, uncounted };
}

/** What counts the tokens of an answer of which neither a tape nor another one has counted all. */
function countsOf(draft: Draft, tape: Imported): readonly Draft[] {
  const { meta, payload, ...answer } = wholeDraft(writtenAgain(draft, tape));
  const { usage, usageBefore: before } = meta ?? {};
  if (!isObject(usage) || !isObject(payload)) return [];
  const isCounted = ([name, count]: [string, unknown]) =>
    Number(count) <= Number((isObject(before) && before[name]) || 0);
  if (Object.entries(usage).every(isCounted)) return [];
  return [{ ...answer, payload: { role: payload.role, content: [] }, ...(meta && { meta }) }];
}

/** Whether what a plan has in a place was erased: under its own key, under that in the session that was resumed, or elsewhere. */
function isErasedIn(
  { erased, erasedElsewhere }: Imported,
  conversation: ConversationPlan,
  place: number,
): boolean {
  const { base, spine } = conversation;
  const { key = '' } = spine[place] ?? {};
  if (erased.has(key) || erasedElsewhere?.has(conversation, place) === true) return true;
  const inherited = erased.size === 0 ? undefined : base?.inherited?.(key);
  return inherited !== undefined && erased.has(inherited);
}

/** Whether a person has rewound what a plan has behind some drafts, and it has no record that came since. */
function isRewound({ spine }: ConversationPlan, { rewound, known }: Imported, same: number): boolean {
  const isKnown = (draft: Draft) => {
    const { key = '' } = draft;
    return known.has(key) && !isLonger(draft, rewound.get(key) ?? Number.POSITIVE_INFINITY);
  };
  return rewound.has(spine[same]?.key ?? '') && spine.slice(same).every(isKnown);
}

/** How much of a plan a tape shows, and the position behind which it shows something else. */
export function sameOf(plan: ConversationPlan, tape: Imported): Pick<Change, 'same' | 'rewindTo'> {
  const { spine, asides, base } = plan;
  // Without the file of a session, its subagents alone say nothing of what it has.
  if (spine.length === 0 && asides.length === 0 && base === undefined) return { same: 0 };
  const shown = spineOf(tape.shown);
  let same = commonOf(plan, shown);
  // Between a call and its last result nothing can be cut.
  while (same > 0 && shown[same]?.kind === 'tool-result') same -= 1;
  const hidden = shown[same];
  return { same, ...(hidden !== undefined && { rewindTo: hidden.seq - 1 }) };
}

/**
 * Whether a conversation has nothing that a tape lacks, as that of an older copy of a source: all that is settled in it is shown,
 * and what is not, such as an answer of which only a part had come, is a part of what the tape has. Pure.
 * @param isPart whether the content of a draft is a part of that of an entry
 */
export function saysNothingNew(
  { spine, settled }: Pick<ConversationPlan, 'spine' | 'settled'>,
  tape: Imported,
  isPart: (draft: Draft, entry: Shown) => boolean,
): boolean {
  const shown = new Map(tape.shown.map((entry) => [entry.key, entry]));
  return spine.every((draft, i) => {
    const { key = '' } = draft;
    const own = shown.get(key);
    if (own !== undefined && isSame(draft, own)) return true;
    if (i < settled) return false;
    if (draft.meta?.repaired === true) return true;
    // An answer has another id in a copy, and where its first record had not come.
    const answer = answerOf(draft, tape) ?? key;
    const entry = own ?? shown.get(answer);
    if (entry !== undefined) return isPart(draft, entry);
    const length = tape.rewound.get(key) ?? tape.rewound.get(answer);
    return length !== undefined ? !isLonger(draft, length) : answer !== key;
  });
}

/** Whether a record that no view shows is here already: another session of its conversation may have it. */
function isKept(draft: Draft, { beside = [], ...own }: Imported): boolean {
  return [own, ...beside].some((one) => hasAside(one, draft));
}

/** Whether a tape has a record beside a conversation. One without an id can be another one in the same line of another file. */
export function hasAside({ known, byLine }: Records, draft: Draft): boolean {
  const { key = '' } = draft;
  const all = byLine.get(key);
  return known.has(key) && (all === undefined || all.some((one) => isSame(draft, one)));
}

/** Whether a draft has more content than an entry of its key, of which only a part had come then. */
function isLonger(draft: Draft, length: number): boolean {
  return JSON.stringify(wholeDraft(draft).payload).length > length;
}

/** The key of the answer of the same call that a tape has. A call that several answers have says nothing. */
export function answerOf(draft: Draft, { answers }: Imported): string | undefined {
  const call = draft.kind === 'message' ? apiCallOf(draft) : undefined;
  const [answer, ...others] = call === undefined ? [] : answersOf(call, answers.get(call.request));
  return others.length > 0 ? undefined : answer?.key;
}

/** The entries of an import that are part of its conversation. */
export function spineOf(entries: readonly Shown[]): readonly Shown[] {
  return entries.filter((entry) => !isAside(entry));
}

/** How many drafts of the spine of a plan a tape shows in the same order with the same content. */
export function commonOf(
  { spine, keeps, base }: Pick<ConversationPlan, 'spine' | 'keeps' | 'base'>,
  shown: readonly Shown[],
): number {
  const places = new Map<string, Seq>(base?.places);
  let same = 0;
  for (; same < spine.length && same < shown.length; same += 1) {
    const [draft, entry] = [spine[same], shown[same]];
    if (draft === undefined || entry === undefined || !isSame(draft, entry)) break;
    const { key = '' } = draft;
    const kept = keeps.get(key);
    if (draft.mark === 'boundary' && entry.ref !== (kept === undefined ? kept : places.get(kept))) break;
    if (keeps.size > 0) places.set(key, entry.seq);
  }
  return same;
}

/** Whether a draft is what an entry was written of. */
export function isSame(
  draft: Draft,
  entry: Pick<Shown, 'key' | 'kind' | 'name' | 'mark' | 'content'>,
): boolean {
  if (entry.key !== draft.key || entry.kind !== draft.kind) return false;
  // A redacted entry stays redacted.
  if (entry.content === undefined || isKnownErased(draft)) return true;
  if (entry.name !== draft.name || entry.mark !== draft.mark) return false;
  if (markOf(draft) === entry.content) return true;
  const whole = wholeDraft(draft);
  const raw = rawForm(whole);
  // So does one that was imported with its secrets, or by an earlier version.
  return [raw, earlierForm(whole), raw && earlierForm(raw)].some(
    (form) => form !== undefined && storedMark(form) === entry.content,
  );
}

/** What drafts are known by that stay in memory: each branch is compared with several sessions, all from the beginning. */
const marks = new WeakMap<Draft, string | undefined>();

/** Says what the content of a draft is known by, which is then not read to compare it; undefined for one that was erased. */
export function knownAs(draft: Draft, mark: string | undefined): Draft {
  marks.set(draft, mark);
  return draft;
}

function isKnownErased(draft: Draft): boolean {
  return marks.has(draft) && marks.get(draft) === undefined;
}

/** What the content of a draft is known by; undefined for one of several entries. */
export function markOf(draft: Draft): string | undefined {
  const known = marks.get(draft);
  if (known !== undefined) return known;
  if (draft instanceof LaterDraft) return draft.digest(storedMark);
  const mark = storedMark(draft);
  if (mark !== undefined) marks.set(draft, mark);
  return mark;
}

function storedMark(draft: Draft): string | undefined {
  const { meta } = draft;
  const stored = storedTexts(meta === undefined ? draft : { ...draft, meta: comparedMeta(meta) });
  return stored && contentMark(stored.payload, stored.meta ?? '{}');
}

/**
 * A draft that was written before gets another key, and says how often it was. So it counts as one message; the tokens that
 * were counted for it, here or on the tape from which this one is forked, count once.
 */
function writtenAgain(draft: Draft, { written, counted, elsewhere }: Imported): Draft {
  const { key = '', kind } = draft;
  const again = written.get(key) ?? 0;
  const before = kind === 'message' ? countedBefore(draft, counted.get(key), elsewhere) : counted.get(key);
  if (again === 0 && before === undefined) return draft;
  const { meta } = draft;
  const usageBefore = meta?.usage === undefined ? undefined : before;
  if (again === 0 && usageBefore === undefined) return draft;
  return {
    ...wholeDraft(draft),
    ...(again > 0 && { key: keyAgain(key, again) }),
    meta: { ...meta, ...(again > 0 && { again }), ...(usageBefore !== undefined && { usageBefore }) },
  };
}

/** The tokens that were counted for an answer: by its key, or elsewhere by its call, where it has another key there. */
function countedBefore(
  draft: Draft,
  own: JsonObject | undefined,
  elsewhere: Counted | undefined,
): JsonObject | undefined {
  const call = elsewhere && apiCallOf(draft);
  // An answer may have been arriving when it was counted here, and be whole elsewhere.
  const answered = call && elsewhere?.answered(call);
  const all = [own, elsewhere?.counted(draft.key ?? ''), answered].filter((one) => one !== undefined);
  return all.length === 0 ? undefined : all.reduce((sum, one) => most(sum, one));
}
