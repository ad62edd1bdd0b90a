import type { Entry, HomeStore, Seq } from '@tapedeck/tape';
import { isSame } from '../imported/change.ts';
import { isErased } from '../imported/erased.ts';
import { firstAnswer, saidBy } from '../imported/first-said.ts';
import { isOfImport, isSaid, keyOf, type Shown, shownOf } from '../imported/imported.ts';
import { recalled } from '../imported/recalled.ts';
import { isStandIn } from '../plan/output.ts';
import { type ConversationPlan, isAside } from '../plan/plan.ts';
import { areAlikeButSecrets, type Cleaning, isBeginningOf } from './alike-but-secrets.ts';

/** An entry by all that precedes it: conversations that are equal up to there share it. */
export interface Step extends Pick<Shown, 'kind' | 'mark' | 'name' | 'key' | 'content'> {
  readonly before: Step | undefined;
  /** The key of the compaction with which those up to this one begin, if they do. */
  readonly begunAt: string | undefined;
  /** The number of entries up to this one. */
  readonly count: number;
  /** Of a boundary: the key of the first entry that it keeps in view. */
  readonly kept: string | undefined;
  /** What it says and when, whatever its key. */
  readonly said: string;
  /** When its source said it; not a number where that does not tell. */
  readonly time: number;
  readonly isAnswer: boolean;
  readonly after: Step[];
  /** The tapes that have it, each where it was written. */
  readonly places: Place[];
  /** The sessions that show it last. */
  readonly ends: Set<Member>;
}

/** Where a tape has an entry of its own. */
interface Place {
  readonly member: Member;
  readonly seq: Seq;
}

/** A session of a family. */
export interface Member {
  readonly id: string;
  /** Its name. */
  readonly session: string;
  readonly base: Seq;
  readonly parent: Member | undefined;
  /** Takes forks. */
  isActive: boolean;
  /** What it shows behind each of its own entries that change that, by their positions. */
  readonly seqs: Seq[];
  readonly steps: Step[];
  /** What it shows last. */
  end: Step;
  /** How far its tape was read. */
  read: Seq;
}

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
 * The sessions that begin with the same message, as one tree of what they show, or showed before a rewind. Each entry is read
 * once, on the tape that has it, so that a copy costs no more than what it has of its own.
 */
export class Family {
  readonly root: Step = {
    ...{
      before: undefined,
      begunAt: undefined,
      count: 0,
      kind: 'event',
      mark: undefined,
      name: undefined,
      key: '',
      content: '',
    },
    ...{ kept: undefined, said: '', time: Number.NaN, isAnswer: false },
    ...{ after: [], places: [], ends: new Set() },
  };
  /** The keys of what was erased. */
  readonly erased: Set<string> = new Set();
  readonly #store: HomeStore;
  readonly #members = new Map<string, Member>();

  constructor(store: HomeStore) {
    this.#store = store;
  }

  member(id: string): Member | undefined {
    return this.#members.get(id);
  }

  /** Reads what a session has by now, and returns it with the one that it showed last before. */
  read(id: string): { readonly member: Member; readonly before: Step } | undefined {
    const info = this.#store.sessions.find(id);
    if (info === undefined) return undefined;
    let member = this.#members.get(id);
    if (member === undefined) {
      const { parentId, session, base } = info;
      const parent =
        parentId === undefined ? undefined : (this.member(parentId) ?? this.read(parentId)?.member);
      const end = parent === undefined ? this.root : this.#stepAt(parent, base);
      member = { id, session, base, parent, isActive: true, seqs: [], steps: [], end, read: base };
      this.#members.set(id, member);
    }
    const before = member.end;
    before.ends.delete(member);
    member.isActive = info.lifecycle === 'active';
    if (info.head > member.read)
      for (const entry of recalled(
        this.#store,
        id,
        this.#store.entries.read(id, { from: member.read + 1, to: info.head }),
      ))
        this.#add(member, entry);
    member.read = Math.max(member.read, info.head);
    member.end.ends.add(member);
    return { member, before };
  }

  /**
   * The last point of a session up to which a conversation reads as it does, or did before a rewind.
   * @param preferred the session that is taken if it has that point
   */
  branching(conversation: ConversationPlan, preferred?: string, begun?: Begun): Branching | undefined {
    const first = this.#members.get(preferred ?? '');
    const { spine } = conversation;
    for (let [at] = this.#walk(conversation, begun); at !== undefined && at.count > 0; at = at.before) {
      // Between a call and its last result nothing can be cut.
      if (spine[at.count]?.kind === 'tool-result') continue;
      const own = first?.isActive === true ? at.places.find((place) => isOn(first, place)) : undefined;
      const place = first !== undefined && own !== undefined ? { member: first, seq: own.seq } : placeOf(at);
      if (place !== undefined) return { id: place.member.id, cut: place.seq, count: at.count };
    }
    return undefined;
  }

  /** A session that takes forks and shows all of a conversation, and perhaps more. */
  showing(conversation: ConversationPlan): Member | undefined {
    const [end] = this.#walk(conversation);
    return end?.count === conversation.spine.length ? showingStep(end) : undefined;
  }

  /** Whether a session shows a conversation and nothing else. */
  shows(id: string, conversation: ConversationPlan, begun?: Begun): boolean {
    const end = this.#members.get(id)?.end;
    if (end === undefined || end.count !== conversation.spine.length) return false;
    return this.#walk(conversation, begun).includes(end);
  }

  /** The last point of a session up to which it shows a conversation, or showed it before a rewind; undefined for its beginning. */
  backIn(id: string, conversation: ConversationPlan): Back | undefined {
    const member = this.#members.get(id);
    if (member === undefined) return undefined;
    const { spine } = conversation;
    const placeIn = ({ places }: Step) => places.findLast((place) => isOn(member, place));
    let [end] = this.#walk(conversation, undefined, (step) => placeIn(step) !== undefined);
    // Between a call and its last result nothing can be cut.
    while (end !== undefined && end.count > 0 && spine[end.count]?.kind === 'tool-result') end = end.before;
    if (end === undefined || end.count === 0) return undefined;
    const shown: { readonly key: string; readonly seq: Seq }[] = [];
    for (let at = end; at.before !== undefined; at = at.before)
      shown.push({ key: at.key, seq: placeIn(at)?.seq ?? 0 });
    return { same: end.count, rewindTo: shown[0]?.seq ?? 0, shown: shown.reverse() };
  }

  /**
   * Whether a session shows all that another one shows, which may end with an answer of which only a part had come.
   * @param clean says what is the same without its secrets
   */
  includes(id: string, other: string, clean: Cleaning): boolean {
    const [one, part] = [this.#members.get(id), this.#members.get(other)];
    if (one === undefined || part === undefined) return false;
    let { end } = part;
    while (end.before !== undefined && isStandIn(end.key)) end = end.before;
    const same = stepIn(one.end, end.count);
    if (same === end) return true;
    if (same === undefined) return false;
    if (!this.#isBegun(end, same, clean) && !this.#isAlike(end, same, clean)) return false;
    for (let [own, its] = [end.before, same.before]; own !== its; [own, its] = [own.before, its.before])
      if (own === undefined || its === undefined || !this.#isAlike(own, its, clean)) return false;
    return true;
  }

  /**
   * Whether each entry that a session shows is shown by one of some others, in whatever place.
   * @param clean says what is the same without its secrets
   */
  areIn(ids: readonly string[], other: string, clean: Cleaning): boolean {
    const shown = Map.groupBy(
      ids.flatMap((id) => pathOf(this.#members.get(id))),
      ({ key }) => key,
    );
    const isIn = (step: Step) => {
      const isIt = (one: Step) =>
        one.kind === step.kind && (step.mark !== undefined || this.#saysTheSame(one, step, clean));
      return shown.get(step.key)?.some(isIt);
    };
    return pathOf(this.#members.get(other)).every(isIn);
  }

  /** Whether two entries of a record are the same wherever they stand, apart from secrets that one of them has. */
  #isAlike(one: Step, other: Step, clean: Cleaning): boolean {
    const { key, kind, mark, name, kept } = one;
    const isIt = key === other.key && kind === other.kind && mark === other.mark && name === other.name;
    return isIt && kept === other.kept && this.#saysTheSame(one, other, clean);
  }

  #saysTheSame(one: Step, other: Step, clean: Cleaning): boolean {
    if (one.content === other.content) return true;
    const [entry, its] = [this.#entryOf(one), this.#entryOf(other)];
    return entry !== undefined && its !== undefined && areAlikeButSecrets(entry, its, clean);
  }

  /** Whether a message is the beginning of another one, which has more of the same record. */
  #isBegun(part: Step, whole: Step, clean: Cleaning): boolean {
    if (part.key !== whole.key || part.kind !== whole.kind || part.kind !== 'message') return false;
    const [begun, all] = [this.#entryOf(part), this.#entryOf(whole)];
    return begun !== undefined && all !== undefined && isBeginningOf(begun, all, clean);
  }

  #entryOf({ places: [place] }: Step): Entry | undefined {
    if (place === undefined) return undefined;
    const { member, seq } = place;
    return [...this.#store.entries.read(member.id, { from: seq, to: seq })][0];
  }

  /** The last entries as which a conversation begins; several where one of them is redacted. */
  #walk(
    { spine, keeps }: ConversationPlan,
    begun?: Begun,
    accepts: (step: Step) => boolean = () => true,
  ): readonly Step[] {
    let at: readonly Step[] = [this.#stepOn(begun) ?? this.root];
    for (let i = at[0]?.count ?? 0; i < spine.length; i += 1) {
      const draft = spine[i];
      if (draft === undefined) break;
      const { key = '' } = draft;
      const kept = draft.mark === 'boundary' ? keeps.get(key) : undefined;
      const next = at.flatMap(({ after }) =>
        after.filter(
          (step) => step.key === key && step.kept === kept && accepts(step) && isSame(draft, step),
        ),
      );
      if (next.length === 0) break;
      at = next;
    }
    return at;
  }

  /** The entry with which a conversation that shares it has begun, where the session is as it was written. */
  #stepOn(begun: Begun | undefined): Step | undefined {
    let at = this.#members.get(begun?.id ?? '')?.end;
    if (begun === undefined || at?.count !== begun.of) return undefined;
    while (at !== undefined && at.count > begun.count) at = at.before;
    return at;
  }

  #add(member: Member, entry: Entry): void {
    const step = this.#shownBehind(member, entry);
    if (step === undefined) return;
    member.seqs.push(entry.seq);
    member.steps.push(step);
    member.end = step;
  }

  /** What a session shows behind an entry; undefined for one that changes nothing of that. */
  #shownBehind(member: Member, entry: Entry): Step | undefined {
    if (entry.mark === 'rewind') return this.#stepAt(member, entry.ref ?? 0);
    if (isOfImport(entry)) return isAside(entry) ? undefined : this.#stepOf(member, entry, keyOf(entry));
    // What was said here is before no entry of a source.
    return isSaid(entry) ? this.#stepOf(member, entry, '') : undefined;
  }

  #stepOf(member: Member, entry: Entry, key: string): Step {
    const { end: before } = member;
    const { kind, mark, name, content } = shownOf(entry, key);
    // What was said here has no key of a source.
    if (key !== '' && isErased(entry)) this.erased.add(key);
    const kept =
      mark === 'boundary' && entry.ref !== undefined ? this.#stepAt(member, entry.ref).key : undefined;
    const same = (one: Step) =>
      one.key === key &&
      one.content === content &&
      one.kind === kind &&
      one.kept === kept &&
      one.name === name &&
      one.mark === mark;
    const known = key === '' ? undefined : before.after.find(same);
    const step: Step = known ?? {
      ...{
        before,
        begunAt: before.before === undefined && mark === 'boundary' ? key : before.begunAt,
        count: before.count + 1,
        kind,
        mark,
        name,
        key,
        content,
        kept,
        said: saidBy(entry),
      },
      ...{ time: Date.parse(String(entry.meta.timestamp)), isAnswer: firstAnswer([entry]) !== undefined },
      ...{ after: [], places: [], ends: new Set() },
    };
    if (known === undefined) before.after.push(step);
    step.places.push({ member, seq: entry.seq });
    return step;
  }

  /** What a session showed last at a position. */
  #stepAt(of: Member, at: Seq): Step {
    let [member, seq]: [Member, Seq] = [of, at];
    for (;;) {
      while (member.parent !== undefined && seq <= member.base) member = member.parent;
      const step = member.steps[lastUpTo(member.seqs, seq)];
      if (step !== undefined) return step;
      if (member.parent === undefined) return this.root;
      [member, seq] = [member.parent, member.base];
    }
  }
}

/** What a session shows, the last entry first. */
function pathOf(member: Member | undefined): readonly Step[] {
  const path: Step[] = [];
  for (let at = member?.end; at?.before !== undefined; at = at.before) path.push(at);
  return path;
}

/** The index of the last position that is not behind another one. */
function lastUpTo(seqs: readonly Seq[], seq: Seq): number {
  let [low, high] = [0, seqs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((seqs[middle] ?? 0) <= seq) low = middle + 1;
    else high = middle;
  }
  return low - 1;
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

/** The entry with a number among those up to another one. */
function stepIn(end: Step, count: number): Step | undefined {
  let at: Step | undefined = end;
  while (at !== undefined && at.count > count) at = at.before;
  return at?.count === count ? at : undefined;
}

/** Whether an entry is among those up to another one. */
function isUpTo(step: Step, end: Step): boolean {
  return stepIn(end, step.count) === step;
}

/** Whether a session has what is at a place, of its own or from those that it was forked from. */
function isOn(of: Member, { member, seq }: Place): boolean {
  let to = Number.POSITIVE_INFINITY;
  for (let at: Member | undefined = of; at !== undefined; at = at.parent) {
    if (at === member) return seq <= to;
    to = Math.min(to, at.base);
  }
  return false;
}
