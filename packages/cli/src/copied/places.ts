import type { Seq } from '@tapedeck/tape';

/** Where the entries of a log are in a copy of it, by the number of each planned entry, from 0, and which begin a view. */
export class CopiedPlaces {
  /** Number of entries that were planned, and of those before this log. */
  count = 0;
  first = 0;
  /** The positions of the log, each with the number of entries that were planned up to it. */
  #lines: { readonly seq: Seq; readonly count: number; readonly isMessage: boolean }[] = [];
  /** Its boundaries and rewinds, each with whether a boundary begins the view after it. */
  #marks: { readonly seq: Seq; readonly isBounded: boolean }[] = [];
  /** Which entry each result of the log is in the copy, by its position. */
  readonly #results = new Map<Seq, number>();

  /** Begins a log. */
  begin(): void {
    this.first = this.count;
    [this.#lines, this.#marks] = [[], []];
    this.#results.clear();
  }

  /** The position of the last line that was planned; 0 before the first. */
  get last(): Seq {
    return this.#lines.at(-1)?.seq ?? 0;
  }

  /** Keeps the place of a line: the entries that were planned last, and whether that is one message. */
  keep(seq: Seq, isMessage: boolean): void {
    this.#lines.push({ seq, count: this.count, isMessage });
  }

  /** The entry that a message is; undefined for one that was erased, and for what is no message of the log. */
  message(seq: Seq): number | undefined {
    const line = lastUpTo(this.#lines, seq);
    return line?.seq === seq && line.isMessage ? line.count - 1 : undefined;
  }

  /** Keeps which entry a result is: the one that is planned next. */
  keepResult(seq: Seq): void {
    this.#results.set(seq, this.count);
  }

  /** The entry that a result is; undefined for one that was erased, or is not in the log. */
  result(seq: Seq): number | undefined {
    return this.#results.get(seq);
  }

  /** Marks a boundary. */
  bound(seq: Seq): void {
    this.#marks.push({ seq, isBounded: true });
  }

  /** Marks a rewind to a position: the view after it is that of its target. */
  rewind(seq: Seq, to: Seq): void {
    this.#marks.push({ seq, isBounded: this.isBounded(Math.min(to, seq - 1)) });
  }

  /** Number of entries that were planned for the lines before a position. */
  before(seq: Seq): number {
    return lastUpTo(this.#lines, seq - 1)?.count ?? this.first;
  }

  /** The last entry that was planned for the lines up to a position. */
  upTo(seq: Seq): number {
    return this.before(seq + 1) - 1;
  }

  /** Whether a boundary begins the view at a position. */
  isBounded(head: Seq): boolean {
    return lastUpTo(this.#marks, head)?.isBounded ?? false;
  }
}

/** The last of some places, which are in order, that is not after a position. */
export function lastUpTo<Place extends { readonly seq: Seq }>(
  places: readonly Place[],
  seq: Seq,
): Place | undefined {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle]?.seq ?? 0) <= seq) low = middle + 1;
    else high = middle;
  }
  return places[low - 1];
}
