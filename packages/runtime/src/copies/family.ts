import type { Entry, HomeStore, Seq } from '@tapedeck/tape';
import { isErased } from '../imported/erased.ts';
import { firstAnswer, saidBy } from '../imported/first-said.ts';
import { isOfImport, isSaid, shownOf } from '../imported/imported.ts';
import { keyOf } from '../imported/keys.ts';
import { recalled } from '../imported/recalled.ts';
import { isAside } from '../plan/plan.ts';
import type { Member, Step } from './step.ts';

/** All lists that are empty are one. */
const none: readonly never[] = [];

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
    ...{ after: none, places: none, ends: none },
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

  /** Reads what a session has by now. */
  read(id: string): Member | undefined {
    const info = this.#store.sessions.find(id);
    if (info === undefined) return undefined;
    let member = this.#members.get(id);
    if (member === undefined) {
      const { parentId, session, base } = info;
      // What it inherits of its parent may be newer than what was read of that.
      const parent = parentId === undefined ? undefined : this.read(parentId);
      const end = parent === undefined ? this.root : this.#stepAt(parent, base);
      member = { id, session, base, parent, isActive: true, seqs: [], steps: [], end, read: base };
      this.#members.set(id, member);
    }
    const before = member.end;
    before.ends = before.ends.filter((one) => one !== member);
    member.isActive = info.lifecycle === 'active';
    if (info.head > member.read)
      for (const entry of recalled(
        this.#store,
        id,
        this.#store.entries.read(id, { from: member.read + 1, to: info.head }),
      ))
        this.#add(member, entry);
    member.read = Math.max(member.read, info.head);
    member.end.ends = member.end.ends.concat([member]);
    return member;
  }

  /** An entry, read from a tape that has it. */
  entryOf({ places: [place] }: Step): Entry | undefined {
    if (place === undefined) return undefined;
    const { member, seq } = place;
    return [...this.#store.entries.read(member.id, { from: seq, to: seq })][0];
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
      ...{ after: none, places: none, ends: none },
    };
    // A list that is pushed to has room for sixteen more, and most of these have one.
    if (known === undefined) before.after = before.after.concat([step]);
    step.places = step.places.concat([{ member, seq: entry.seq }]);
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
