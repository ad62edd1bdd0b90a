/** A line, or the two ends of one that was too long to keep. */
export type Line = { readonly text: string } | { readonly head: string; readonly tail: string };

/** How much is kept of each end of a line that is too long. */
const endBytes = 1_024;

/** Cuts bytes into lines, and keeps at most so many bytes of one. */
export class Lines {
  readonly #max: number;
  #parts: Buffer[] = [];
  #size = 0;
  /** The beginning of a line that is too long, and what came last of it. */
  #long: { readonly head: Buffer; tail: Buffer } | undefined;

  constructor(max: number) {
    this.#max = max;
  }

  /** The lines that end in these bytes. */
  *push(chunk: Buffer): Generator<Line> {
    let from = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      this.#add(chunk.subarray(from, at));
      from = at + 1;
      yield this.#take();
    }
    this.#add(chunk.subarray(from));
  }

  #add(part: Buffer): void {
    if (part.length === 0) return;
    this.#size += part.length;
    if (this.#long !== undefined) {
      this.#long.tail = Buffer.concat([this.#long.tail, part]).subarray(-endBytes);
      return;
    }
    this.#parts.push(part);
    if (this.#size <= this.#max) return;
    const all = Buffer.concat(this.#parts);
    this.#parts = [];
    // Copies, so that the rest is not kept in memory.
    this.#long = { head: Buffer.from(all.subarray(0, endBytes)), tail: Buffer.from(all.subarray(-endBytes)) };
  }

  #take(): Line {
    const long = this.#long;
    const text = long === undefined ? Buffer.concat(this.#parts).toString('utf8') : '';
    this.#parts = [];
    this.#size = 0;
    this.#long = undefined;
    return long === undefined
      ? { text }
      : { head: long.head.toString('utf8'), tail: long.tail.toString('utf8') };
  }
}
