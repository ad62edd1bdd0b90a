import type { JsonLine } from './json-lines.ts';

/** Where a record is in its file. */
export interface RecordPlace extends Pick<JsonLine, 'line' | 'offset' | 'bytes'> {
  /** How many records are before it on its line. */
  readonly part: number;
}

/** Where the records of a file are, in columns: of each record 16 bytes are held, where an object has 72. */
export class RecordPlaces {
  #lines = new Uint32Array(1024);
  #bytes = new Uint32Array(1024);
  #offsets = new Float64Array(1024);
  /** Of records that are not the first one of their line: nearly none. */
  readonly #parts = new Map<number, number>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push({ line, offset, bytes }: Omit<RecordPlace, 'part'>): void {
    const i = this.#length;
    if (i === this.#lines.length) this.#grow();
    this.#lines[i] = line;
    this.#bytes[i] = bytes;
    this.#offsets[i] = offset;
    if (i > 0 && this.#lines[i - 1] === line) this.#parts.set(i, (this.#parts.get(i - 1) ?? 0) + 1);
    this.#length += 1;
  }

  at(i: number): RecordPlace {
    const [line = 0, offset = 0, bytes = 0] = [this.#lines[i], this.#offsets[i], this.#bytes[i]];
    return { line, offset, bytes, part: this.#parts.get(i) ?? 0 };
  }

  #grow(): void {
    // A buffer that is transferred leaves no copy.
    const length = Math.ceil(this.#length * 1.5);
    this.#lines = new Uint32Array(this.#lines.buffer.transfer(4 * length));
    this.#bytes = new Uint32Array(this.#bytes.buffer.transfer(4 * length));
    this.#offsets = new Float64Array(this.#offsets.buffer.transfer(8 * length));
  }
}
