/** Keeps the beginning and the end of what a command prints, and counts the rest. Its memory does not grow. */
export class OutputWindow {
  readonly #headMax: number;
  readonly #tailMax: number;
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #bytes = 0;

  /** @param most the most bytes that are kept */
  constructor(most: number) {
    this.#headMax = Math.floor(most / 3);
    this.#tailMax = most - this.#headMax;
  }

  /** How many bytes were printed. */
  get bytes(): number {
    return this.#bytes;
  }

  add(chunk: Buffer): void {
    this.#bytes += chunk.length;
    const head = chunk.subarray(0, this.#headMax - this.#headBytes);
    if (head.length > 0) {
      this.#head.push(Buffer.from(head));
      this.#headBytes += head.length;
    }
    const rest = chunk.subarray(head.length);
    if (rest.length === 0) return;
    this.#tail.push(Buffer.from(rest.subarray(Math.max(0, rest.length - this.#tailMax))));
    this.#tailBytes += Math.min(rest.length, this.#tailMax);
    // One copy for many small pieces.
    if (this.#tailBytes > 2 * this.#tailMax || this.#tail.length > 1_000) this.#trim();
  }

  /** What was printed: whole, or with a note between its beginning and its end. */
  text(): string {
    this.#trim();
    const [head, tail] = [Buffer.concat(this.#head), Buffer.concat(this.#tail)];
    const cut = this.#bytes - head.length - tail.length;
    if (cut === 0) return Buffer.concat([head, tail]).toString('utf8');
    const note = `[cut: ${cut} of ${this.#bytes} bytes are left out here; to see them, write the output to a file and read that]`;
    return `${head.toString('utf8')}\n${note}\n${tail.toString('utf8')}`;
  }

  #trim(): void {
    const whole = Buffer.concat(this.#tail);
    const kept = Buffer.from(whole.subarray(Math.max(0, whole.length - this.#tailMax)));
    [this.#tail, this.#tailBytes] = [[kept], kept.length];
  }
}
