import type { Member, Step } from './family.ts';

/** The main conversation that went on first of those that have an entry, and when it did. */
interface Lead {
  readonly member: Member;
  readonly at: number;
}

/** Where a main conversation belongs: it begins like its source, which is no copy, or went on first where the two part. */
export interface Likely {
  readonly session: string;
  readonly id: string;
  readonly source?: string;
  /** How many entries both begin with. */
  readonly common: number;
}

/**
 * Of which session another one is most likely a copy, where its source does not say: of those that went on before it where
 * the two part, the one with the longest common beginning, and of several the one that went on first. One whose source says
 * that it is a copy went on after all others.
 */
export class Alike {
  readonly #isMain: (member: Member) => boolean;
  readonly #isCopy: (member: Member) => boolean;
  readonly #leads = new Map<Step, Lead>();
  /** Entries behind which something has changed since the last look. */
  readonly #moved = new Set<Step>();
  /** What was said of each session last. */
  readonly #said = new Map<Member, string>();

  /** @param is what is known of the sessions */
  constructor(is: {
    readonly main: (member: Member) => boolean;
    readonly copy: (member: Member) => boolean;
  }) {
    this.#isMain = is.main;
    this.#isCopy = is.copy;
  }

  /** Takes that a session shows another last entry than before. */
  move(before: Step, now: Step): void {
    for (const end of new Set([before, now])) {
      this.#moved.add(end);
      for (let at = end; at.before !== undefined; at = at.before) {
        const [first] = this.#all(at);
        if (first === undefined) this.#leads.delete(at);
        else this.#leads.set(at, first);
      }
    }
  }

  /** Says all again, since what was said may have been changed elsewhere. */
  forget(): void {
    this.#said.clear();
  }

  /** The places of the sessions that the last changes concern, sources before their copies. */
  places(): readonly Likely[] {
    const steps = new Set<Step>();
    for (const end of this.#moved)
      for (let at = end; at.before !== undefined && !steps.has(at); at = at.before) steps.add(at);
    this.#moved.clear();
    const places: Likely[] = [];
    const say = (member: Member, rest: Pick<Likely, 'source' | 'common'>): void => {
      const said = `${rest.common} ${rest.source}`;
      if (this.#said.get(member) === said) return;
      this.#said.set(member, said);
      const { id, session } = member;
      places.push({ id, session, ...rest });
    };
    for (const step of [...steps].sort((a, b) => a.count - b.count)) {
      const [first, ...others] = this.#all(step);
      if (first === undefined) continue;
      const { count: common } = step;
      if (common === 1) say(first.member, { common });
      const { session: source } = first.member;
      for (const { member } of others) say(member, { source, common });
    }
    return places;
  }

  /** The conversations that end at an entry, and the first ones of those that go on from it, the first one of all first. */
  #all({ ends, after }: Step): readonly Lead[] {
    const all: Lead[] = [];
    for (const member of ends)
      if (member.isActive && this.#isMain(member)) all.push({ member, at: Number.MAX_SAFE_INTEGER });
    for (const step of after) {
      const lead = this.#leads.get(step);
      if (lead !== undefined)
        all.push(Number.isNaN(step.time) ? lead : { member: lead.member, at: step.time });
    }
    let first = 0;
    for (let i = 1; i < all.length; i += 1) if (this.#isBefore(all[i], all[first])) first = i;
    const [one] = all.splice(first, 1);
    return one === undefined ? [] : [one, ...all];
  }

  #isBefore(one: Lead | undefined, other: Lead | undefined): boolean {
    if (one === undefined || other === undefined) return false;
    const [isCopy, isOtherCopy] = [one, other].map(({ member }) => this.#isCopy(member));
    if (isCopy !== isOtherCopy) return isOtherCopy === true;
    return one.at < other.at || (one.at === other.at && one.member.session < other.member.session);
  }
}
