/** The bytes of a uuid. */
const size = 16;

/** Ids of the records of a file, by their places: of each 16 bytes are held, where it is a uuid as nearly all are. */
export class IdColumn {
  #uuids = new Uint8Array(0);
  /** Those that are no uuid in its usual form. */
  readonly #others = new Map<number, string>();

  get(i: number): string | undefined {
    const at = i * size;
    // No id has no bytes: so the uuid of zeros is among the others.
    if (at >= this.#uuids.length || isZero(this.#uuids, at)) return this.#others.get(i);
    const hex = Buffer.from(this.#uuids.buffer, at, size).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }

  set(i: number, id: string): void {
    const at = i * size;
    if (at >= this.#uuids.length) this.hold(Math.max(1024, Math.ceil((i + 1) * 1.5)));
    if (id.length !== 36 || !writeUuid(id, this.#uuids, at) || isZero(this.#uuids, at)) {
      this.#uuids.fill(0, at, at + size);
      this.#others.set(i, id);
    }
  }

  /** Has room for so many ids, which is more than there are, or all of them. */
  hold(length: number): void {
    // A buffer that is transferred leaves no copy.
    this.#uuids = new Uint8Array(this.#uuids.buffer.transfer(length * size));
  }
}

function isZero(bytes: Uint8Array, at: number): boolean {
  for (let i = at; i < at + size; i += 1) if (bytes[i] !== 0) return false;
  return true;
}

/** Writes the bytes of a uuid in lower case; false, and perhaps some bytes, for any other text. */
function writeUuid(id: string, bytes: Uint8Array, from: number): boolean {
  let at = from;
  for (let i = 0; i < id.length; i += 2) {
    if (i === 8 || i === 13 || i === 18 || i === 23) {
      if (id.charCodeAt(i) !== 0x2d) return false;
      i += 1;
    }
    const [high, low] = [digitOf(id.charCodeAt(i)), digitOf(id.charCodeAt(i + 1))];
    if (high < 0 || low < 0) return false;
    bytes[at] = (high << 4) | low;
    at += 1;
  }
  return at === from + size;
}

/** The value of a digit, in lower case; -1 for any other character. */
function digitOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  return code >= 0x61 && code <= 0x66 ? code - 0x57 : -1;
}
