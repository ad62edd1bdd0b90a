import type { Seq } from '@tapedeck/tape';
import { isSame } from '../imported/change.ts';
import type { Shown } from '../imported/imported.ts';
import type { ConversationPlan } from '../plan/plan.ts';
import type { Family } from './family.ts';
import { isOn, isUpTo, type Member, type Place, type Step } from './step.ts';

/** Where a conversation that begins as a session does can be forked from that. */
export interface Branching {
  readonly id: string;
  readonly cut: Seq;
  /** How many drafts of the conversation that has. */
  readonly count: number;
}

/** What a conversation begins with: as many entries of a session as it shares with the conversation that this shows. */
export interface Begun {
  readonly id: string;
  /** How many entries that shows. */
  readonly of: number;
  readonly count: number;
}

/** Where a session showed more of a conversation than it does. */
export interface Back {
  /** How many drafts of the conversation. */
  readonly same: number;
  readonly rewindTo: Seq;
  /** Their entries. */
  readonly shown: readonly Pick<Shown, 'key' | 'seq'>[];
}

/**
 * The last point of a session up to which a conversation reads as it does, or did before a rewind.
 * @param preferred the session that is taken if it has that point
 */
export function branching(
  family: Family,
  conversation: ConversationPlan,
  preferred?: string,
  begun?: Begun,
): Branching | undefined {
  const first = family.member(preferred ?? '');
  const { spine } = conversation;
  for (let [at] = walk(family, conversation, begun); at !== undefined && at.count > 0; at = at.before) {
    // Between a call and its last result nothing can be cut.
    if (spine[at.count]?.kind === 'tool-result') continue;
    const own = first?.isActive === true ? at.places.find((place) => isOn(first, place)) : undefined;
    const place = first !== undefined && own !== undefined ? { member: first, seq: own.seq } : placeOf(at);
    if (place !== undefined) return { id: place.member.id, cut: place.seq, count: at.count };
  }
  return undefined;
}

/** A session that takes forks and shows all of a conversation, and perhaps more. */
export function showing(family: Family, conversation: ConversationPlan): Member | undefined {
  const [end] = walk(family, conversation);
  return end?.count === conversation.spine.length ? showingStep(end) : undefined;
}

/** Whether a session shows a conversation and nothing else. */
export function shows(family: Family, id: string, conversation: ConversationPlan, begun?: Begun): boolean {
  const end = family.member(id)?.end;
  if (end === undefined || end.count !== conversation.spine.length) return false;
  return walk(family, conversation, begun).includes(end);
}

/** The last point of a session up to which it shows a conversation, or showed it before a rewind; undefined for its beginning. */
export function backIn(family: Family, id: string, conversation: ConversationPlan): Back | undefined {
  const member = family.member(id);
  if (member === undefined) return undefined;
  const { spine } = conversation;
  const placeIn = ({ places }: Step) => places.findLast((place) => isOn(member, place));
  let [end] = walk(family, conversation, undefined, (step) => placeIn(step) !== undefined);
  // Between a call and its last result nothing can be cut.
  while (end !== undefined && end.count > 0 && spine[end.count]?.kind === 'tool-result') end = end.before;
  if (end === undefined || end.count === 0) return undefined;
  const shown: { readonly key: string; readonly seq: Seq }[] = [];
  for (let at = end; at.before !== undefined; at = at.before)
    shown.push({ key: at.key, seq: placeIn(at)?.seq ?? 0 });
  return { same: end.count, rewindTo: shown[0]?.seq ?? 0, shown: shown.reverse() };
}

/** The last entries as which a conversation begins; several where one of them is redacted. */
function walk(
  family: Family,
  { spine, keeps }: ConversationPlan,
  begun?: Begun,
  accepts: (step: Step) => boolean = () => true,
): readonly Step[] {
  let at: readonly Step[] = [stepOn(family, begun) ?? family.root];
  for (let i = at[0]?.count ?? 0; i < spine.length; i += 1) {
    const draft = spine[i];
    if (draft === undefined) break;
    const { key = '' } = draft;
    const kept = draft.mark === 'boundary' ? keeps.get(key) : undefined;
    const next = at.flatMap(({ after }) =>
      after.filter((step) => step.key === key && step.kept === kept && accepts(step) && isSame(draft, step)),
    );
    if (next.length === 0) break;
    at = next;
  }
  return at;
}

/** The entry with which a conversation that shares it has begun, where the session is as it was written. */
function stepOn(family: Family, begun: Begun | undefined): Step | undefined {
  let at = family.member(begun?.id ?? '')?.end;
  if (begun === undefined || at?.count !== begun.of) return undefined;
  while (at !== undefined && at.count > begun.count) at = at.before;
  return at;
}

/** Where a session that takes forks has an entry: one that shows it, if there is one. */
function placeOf(step: Step): Place | undefined {
  const places = step.places.filter(({ member }) => member.isActive);
  const shown = places.find(({ member }) => isUpTo(step, member.end));
  if (shown !== undefined) return shown;
  const member = showingStep(step);
  const place = member && step.places.find((one) => isOn(member, one));
  return member === undefined || place === undefined ? places[0] : { member, seq: place.seq };
}

/** A session that takes forks, and shows an entry. */
function showingStep(step: Step): Member | undefined {
  for (const left = [step]; ; ) {
    const at = left.pop();
    if (at === undefined) return undefined;
    for (const member of at.ends) if (member.isActive) return member;
    left.push(...at.after.toReversed());
  }
}
