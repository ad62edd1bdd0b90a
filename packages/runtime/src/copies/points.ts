import type { Step } from './step.ts';

/**
 * What sessions say up to a point: those that say the same at the same times share it, whatever ids their records have. What was
 * said here, before no entry of a source, is no part of it.
 */
export interface Point {
  readonly before: Point | undefined;
  /** An entry that says this, as the first of those that do was read; undefined before all entries. */
  readonly step: Step | undefined;
  /** The number of entries up to this one. */
  readonly count: number;
  /** What its entry says, and when. */
  readonly said: string;
  /** When its source says that it was said, or the same as of the one that precedes it where that does not tell. */
  readonly clock: number;
  /** When: never before the one that precedes it. */
  readonly time: number;
  /** Whether a model has answered or summarised by now: people and programs may say the same at the same time. */
  readonly isAnswered: boolean;
  /** Whether all begins with what something may be found to precede yet: a compaction, or a message behind a lost parent. */
  readonly isLoose: boolean;
  readonly after: Map<string, Point>;
}

/** The points of what the sessions of a home say, as one tree. */
export class Points {
  readonly #root: Point = {
    ...{
      before: undefined,
      step: undefined,
      count: 0,
      said: '',
      isAnswered: false,
      isLoose: false,
      after: new Map(),
    },
    ...{ clock: Number.NEGATIVE_INFINITY, time: Number.NEGATIVE_INFINITY },
  };
  #known = new WeakMap<Step, Point>();
  /** What a copy may begin with and something precedes, by what it says: compactions, and messages behind lost parents. */
  readonly #inside = new Map<string, Point>();
  /** What these messages say. */
  readonly #rejoined = new Set<string>();

  /** A message follows a lost parent: a copy may begin with it. */
  rejoin(said: string): void {
    if (this.#rejoined.has(said)) return;
    this.#rejoined.add(said);
    // What begins with it was taken for a beginning.
    this.#known = new WeakMap();
  }

  /** The points at which sessions say what something begins with, as far as one does: each of it in one of several ways. */
  *along(said: Iterable<readonly string[]>): Generator<Point> {
    let before: readonly Point[] = [this.#root];
    for (const ways of said) {
      const next = before.flatMap((at) => ways.flatMap((one) => this.#after(at, one) ?? []));
      if (next.length === 0) return;
      yield* next;
      before = next;
    }
  }

  #after(at: Point, said: string): Point | undefined {
    return (at === this.#root ? this.#inside.get(said) : undefined) ?? at.after.get(said);
  }

  /**
   * What is said up to an entry. What a copy says that begins at a compaction, or behind a lost parent, follows what precedes
   * that in its source, as soon as that was read.
   */
  at(end: Step): Point {
    const fresh: Step[] = [];
    let point: Point | undefined;
    for (let at: Step | undefined = end; at?.before !== undefined && point === undefined; at = at.before) {
      point = this.#known.get(at);
      if (point === undefined) fresh.push(at);
    }
    let last = point ?? this.#root;
    const steps = fresh.reverse();
    for (let i = 0; i < steps.length; ) {
      const run = last === this.#root ? steps.slice(i, i + 1) : inSourceOrder(steps, i);
      for (const step of run) last = step.key === '' ? last : this.#next(last, step);
      i += run.length;
      const end = steps[i - 1];
      // More of what a compaction kept may follow.
      const isOpen = i === steps.length && run.some(({ mark }) => mark === 'boundary');
      if (end !== undefined && !last.isLoose && !isOpen) this.#known.set(end, last);
    }
    return last;
  }

  /** Reads what is said up to some entries: what one says may tell what another one follows. */
  read(ends: readonly Step[]): void {
    let before: readonly Point[] = [];
    do {
      before = [...this.#inside.values()];
      for (const end of ends) this.at(end);
    } while ([...this.#inside.values()].some((one, i) => one !== before[i]));
  }

  #next(before: Point, step: Step): Point {
    if (isKept(before, step)) return before;
    const isRejoined = this.#rejoined.has(step.said);
    const isCompaction = step.mark === 'boundary' && !Number.isNaN(step.time);
    if (!isCompaction && !isRejoined) return next(before, step, false);
    const known = this.#inside.get(step.said);
    if (before === this.#root) return known ?? next(before, step, isRejoined);
    const point = next(before, step, isRejoined);
    // What precedes it may have been found to follow another one. What says the same again would follow itself without end.
    const isLater = known === undefined || known.count < point.count;
    if (isLater && !isSaidBy(before, step.said)) this.#inside.set(step.said, point);
    return point;
  }
}

/** The entry in a place or, of a compaction that keeps nothing before it, what it kept, and it: a copy has that behind it. */
function inSourceOrder(steps: readonly Step[], i: number): readonly Step[] {
  const [step, ...rest] = steps[i]?.mark === 'boundary' ? steps.slice(i) : steps.slice(i, i + 1);
  if (step === undefined || step.mark !== 'boundary' || step.kept !== undefined) return steps.slice(i, i + 1);
  const end = rest.findIndex(({ time }) => !(time < step.time));
  return [...rest.slice(0, end === -1 ? rest.length : end), step];
}

/** Whether something is said up to a point. */
function isSaidBy(point: Point, said: string): boolean {
  let at: Point | undefined = point;
  while (at !== undefined && at.said !== said) at = at.before;
  return at !== undefined;
}

/** Whether a compaction kept what follows it: the source has that before the compaction, and a copy has it behind it. */
function isKept({ step: compaction, clock }: Point, { time }: Step): boolean {
  return compaction?.mark === 'boundary' && time < clock;
}

function next(before: Point, step: Step, isRejoined: boolean): Point {
  const { said, time, mark, isAnswer } = step;
  const known = before.after.get(said);
  if (known !== undefined) return known;
  const clock = Number.isNaN(time) ? before.clock : time;
  const point: Point = {
    ...{
      before,
      step,
      said,
      count: before.count + 1,
      isAnswered: before.isAnswered || isAnswer || mark === 'boundary',
    },
    ...{ clock, time: Math.max(before.time, clock), after: new Map() },
    isLoose: before.before === undefined ? mark === 'boundary' || isRejoined : before.isLoose,
  };
  before.after.set(said, point);
  return point;
}

/** Whether a point is on the way to another one. Pure. */
export function isUpTo(point: Point, end: Point): boolean {
  let at: Point | undefined = end;
  while (at !== undefined && at.count > point.count) at = at.before;
  return at === point;
}

/** In which order two points come: that of their times or, where these are equal, one that is the same everywhere. Pure. */
function compared(one: Point, other: Point): number {
  const { time, count, clock, said } = one;
  if (time !== other.time) return time - other.time;
  if (count !== other.count) return count - other.count;
  if (clock !== other.clock) return clock - other.clock;
  return said === other.said ? 0 : said < other.said ? -1 : 1;
}

/** What a source says: each way of it ends at a point. */
export class Ways {
  readonly ends: readonly Point[];
  #all: Set<Point> | undefined;

  constructor(ends: readonly Point[]) {
    this.ends = ends;
  }

  /** The first point on the way to another one that is on none of these; undefined where that is on one of them. */
  leftBy(end: Point): Point | undefined {
    const [only] = this.ends;
    if (only === undefined) return end;
    let first: Point | undefined;
    if (this.ends.length > 1) {
      for (let at: Point | undefined = end; at !== undefined && !this.#has(at); at = at.before) first = at;
      return first;
    }
    // Most have one way, of which only what follows the common part is looked at.
    for (let [at, its]: (Point | undefined)[] = [end, only]; at !== undefined && at !== its; ) {
      const above = (its?.count ?? 0) - at.count;
      if (above >= 0) its = its?.before;
      if (above <= 0) [first, at] = [at, at.before];
    }
    return first;
  }

  #has(point: Point): boolean {
    if (this.#all === undefined) {
      this.#all = new Set();
      for (const end of this.ends)
        for (let at: Point | undefined = end; at !== undefined && !this.#all.has(at); at = at.before)
          this.#all.add(at);
    }
    return this.#all.has(point);
  }
}

/** Whether one source went on before another one where the two differ first, or ended there: an order of any number of them. Pure. */
export function wentOnFirst(one: Ways, other: Ways): boolean | undefined {
  const [own, its] = [firstOf(one, other), firstOf(other, one)];
  if (own !== undefined && its !== undefined) return compared(own, its) < 0;
  if (its !== undefined) return compared(its, lastOf(one)) > 0;
  return own === undefined ? undefined : compared(own, lastOf(other)) < 0;
}

/** The first point that a source has and another one has not. */
function firstOf(of: Ways, other: Ways): Point | undefined {
  const all = of.ends.flatMap((end) => other.leftBy(end) ?? []);
  return all.length === 0 ? undefined : all.reduce((first, one) => (compared(one, first) < 0 ? one : first));
}

function lastOf({ ends }: Ways): Point {
  return ends.reduce((last, one) => (compared(one, last) > 0 ? one : last));
}
