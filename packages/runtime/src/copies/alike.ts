import { type Point, type Points, Ways, wentOnFirst } from './points.ts';
import { type Member, pathOf, type Step } from './step.ts';

/** A session of a tool, as far as it is here. */
export interface Source {
  readonly id: string;
  /** The sessions of its conversations that take forks: the main one, and then its branches. */
  readonly members: readonly [Member, ...Member[]];
  /** The id of the one that its records name as that of which it is a copy. */
  readonly names: string | undefined;
  /** Whether a run cleared another one before it, as its records say: a copy may say so, too, or not. */
  readonly isCleared: boolean;
}

/** What is known of the entries of sources. */
interface Known {
  readonly points: Points;
  /** The key that the first message of a session has in its source, by the ULID of the session; empty where that is not known. */
  readonly firstOf: (id: string) => string;
}

/** Where a main conversation belongs; it is a root where nothing else begins like it and precedes it. */
export interface Likely {
  readonly id: string;
  /** How many entries it says, and with how many of them those before it begin, too. */
  readonly count: number;
  readonly shared: number;
  readonly source?: {
    /** The session that has most of what it begins with. */
    readonly id: string;
    /** How many entries both have, and how many that has before them: none where both begin with them. */
    readonly common: number;
    readonly before: number;
  };
}

/** Who was first to say something: the first source of all that did, in its main conversation if that has it. */
interface Claim {
  readonly source: Source;
  readonly id: string;
}

/**
 * Of which session each other one is most likely a copy: of those before it, the one with which it has the longest beginning in
 * common, and of several the first. A source precedes what its copies name as their source; of two that name neither, one that
 * did not go on where they differ, or went on first, precedes the other. The same sources have the same places whichever of
 * them came first, sources before their copies. Pure, apart from the points that it makes.
 */
export function likelyPlaces(sources: readonly Source[], { points, firstOf }: Known): readonly Likely[] {
  points.read(sources.flatMap(({ members }) => members.map(({ end }) => end)));
  const ways = new Map(
    sources.map((one) => [one, new Ways(one.members.map(({ end }) => points.at(end)))] as const),
  );
  // As long as no model has answered, the same words may be said elsewhere at the same time: only equal ids count then.
  const [answered, unanswered] = [new Map<Point, Claim>(), new Map<string, Map<Point, Claim>>()];
  return inOrder(ways).map((source) => {
    const [{ id, end: last }] = source.members;
    let best: { readonly id: string; readonly member: Member; readonly count: number } | undefined;
    let shared = 0;
    for (const member of source.members) {
      const first = firstOf(behindIts(member, sources).id);
      const begun = unanswered.get(first) ?? new Map<Point, Claim>();
      if (first !== '') unanswered.set(first, begun);
      const end = points.at(member.end);
      for (let point = end; point.before !== undefined; point = point.before) {
        const claims = point.isAnswered ? answered : begun;
        const claim = claims.get(point);
        if (claim === undefined) claims.set(point, { source, id: member.id });
        else if (claim.source !== source && point.count > (best?.count ?? 0))
          best = { id: claim.id, member, count: point.count };
        if (claim === undefined) continue;
        if (member.id === id) shared = point.count;
        break;
      }
    }
    const { count } = points.at(last);
    if (best === undefined) return { id, count, shared };
    const before = beforeIts(best.member, points);
    return { id, count, shared, source: { id: best.id, common: best.count - before, before } };
  });
}

/** How many entries of others precede all that one has. */
function beforeIts(member: Member, points: Points): number {
  const first = pathOf(member).findLast(({ key }) => key !== '');
  return first === undefined ? 0 : points.at(first).count - 1;
}

/** Of one that begins at a compaction, one that has what precedes that; else the one itself. */
function behindIts(member: Member, sources: readonly Source[]): Member {
  const { begunAt } = member.end;
  if (begunAt === undefined) return member;
  const passes = ({ end }: Member) => {
    let at: Step | undefined = end.begunAt === begunAt ? undefined : end;
    while (at !== undefined && at.key !== begunAt) at = at.before;
    return at !== undefined;
  };
  for (const { members } of sources) for (const one of members) if (passes(one)) return one;
  return member;
}

type WaysOf = ReadonlyMap<Source, Ways>;

/** The sources in order: behind each its copies, as far as records say it, and otherwise by when they went on. */
function inOrder(ways: WaysOf): readonly Source[] {
  const isBefore = (one: Source, other: Source): boolean => {
    if (one.isCleared !== other.isCleared) return one.isCleared;
    const [own, its] = [ways.get(one), ways.get(other)];
    const isFirst = own === undefined || its === undefined ? undefined : wentOnFirst(own, its);
    return isFirst ?? one.members[0].session < other.members[0].session;
  };
  const above = sourcesOf(ways, isBefore);
  const chains = new Map([...ways.keys()].map((one) => [one, chainOf(above, one)] as const));
  return [...ways.keys()].sort((one, other) => {
    const [own = [], its = []] = [chains.get(one), chains.get(other)];
    const i = own.findIndex((at, n) => at !== its[n]);
    const [a, b] = [own[i], its[i]];
    if (a === undefined) return own.length - its.length;
    return b === undefined || isBefore(b, a) ? 1 : -1;
  });
}

type IsBefore = (one: Source, other: Source) => boolean;

/**
 * The sources of copies: those that their records name. One that names none and has what a copy says behind its own source is a
 * copy of that copy.
 */
function sourcesOf(ways: WaysOf, isBefore: IsBefore): ReadonlyMap<Source, Source> {
  const byId = new Map([...ways.keys()].map((one) => [one.id, one]));
  const above = new Map<Source, Source>();
  const beyond = new Map<Point, Source>();
  for (const [one, { ends }] of ways) {
    const source = byId.get(one.names ?? '');
    if (source === undefined) continue;
    above.set(one, source);
    for (const point of ends.flatMap((end) => ways.get(source)?.leftBy(end) ?? [])) {
      const other = beyond.get(point);
      if (other === undefined || isBefore(one, other)) beyond.set(point, one);
    }
  }
  for (const [one, { ends }] of beyond.size > 0 ? ways : []) {
    if (above.has(one)) continue;
    let last: Point | undefined;
    for (const end of ends)
      for (let at: Point | undefined = end; at !== undefined; at = at.before)
        if (beyond.has(at) && at.count > (last?.count ?? 0)) last = at;
    const copy = last && beyond.get(last);
    if (copy !== undefined) above.set(one, copy);
  }
  return withoutCircles(above, isBefore);
}

/** Damaged or forged files can name each other: the first one of a circle is taken for the source. */
function withoutCircles(above: Map<Source, Source>, isBefore: IsBefore): ReadonlyMap<Source, Source> {
  const done = new Set<Source>();
  for (const begin of [...above.keys()]) {
    const path: Source[] = [];
    let at: Source | undefined = begin;
    for (; at !== undefined && !done.has(at) && !path.includes(at); at = above.get(at)) path.push(at);
    if (at !== undefined && path.includes(at))
      above.delete(path.slice(path.indexOf(at)).reduce((first, one) => (isBefore(one, first) ? one : first)));
    for (const one of path) done.add(one);
  }
  return above;
}

/** A source behind those of which it is a copy, the first one first. */
function chainOf(above: ReadonlyMap<Source, Source>, of: Source): readonly Source[] {
  const chain: Source[] = [];
  for (let at: Source | undefined = of; at !== undefined; at = above.get(at)) chain.push(at);
  return chain.reverse();
}
