import { hasOwnId, keyOf, QuotedTexts, saysLine, shortHash } from '@tapedeck/runtime/internal';
import type { Draft, Entry, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** An entry of a tape, or what an import would write of a record. */
type Recorded = Entry | Draft;

/**
 * What the records of a source say, by which those of a copy are known. A program that copies records may change where and in
 * which session they were made, and their ids.
 */
export class RecordedContent {
  readonly #ids = new Set<string>();
  readonly #said = new Set<string>();
  /** When what was erased before was said, and in answer to which request. */
  readonly #erased = new Set<string>();
  readonly #texts = new QuotedTexts();

  add(entry: Recorded): void {
    const key = keyOf(entry);
    if (hasOwnId(key)) this.#ids.add(key);
    const { kind, payload } = entry;
    if (kind === 'redaction' && isObject(payload) && isObject(payload.was)) {
      const moment = momentOf(payload.was);
      if (moment !== undefined) this.#erased.add(moment);
    }
    if (payload === null) return;
    for (const mark of marksOf(entry)) this.#said.add(mark);
    this.#texts.addSaid(payload);
  }

  /** How much is known of what `has` looks for. */
  get known(): number {
    return this.#ids.size + this.#said.size;
  }

  addText(text: string): void {
    this.#texts.add(text);
  }

  hasText(text: string): boolean {
    return this.#texts.has(text);
  }

  /** Whether an entry was made of one of the records, or of a copy of it. */
  has(entry: Recorded): boolean {
    return this.#ids.has(keyOf(entry)) || marksOf(entry).some((mark) => this.#said.has(mark));
  }

  /** Whether an entry of a copy was said when one of the records was that were erased before, of which nothing else is known. */
  wasErased({ meta }: Entry): boolean {
    const moment = meta.source === 'import' ? momentOf(meta) : undefined;
    return moment !== undefined && this.#erased.has(moment);
  }

  /** Whether an entry that no model sees repeats something of the records, as the last prompt of a session does. */
  isIn({ kind, payload }: Entry): boolean {
    const isSeen = kind !== 'event' && !kind.startsWith('x-');
    return !isSeen && this.#texts.areIn(payload);
  }
}

/** What an entry is known by wherever it is: that it says the same at the same time, or under the same id. */
function marksOf(entry: Recorded): readonly string[] {
  const { kind, payload, meta } = entry;
  if (payload === null) return [];
  const key = keyOf(entry);
  const ids = [meta?.timestamp, saysLine(key) ? undefined : key].filter((id) => typeof id === 'string');
  // Without its name: that of a compaction has its number in the session, and a copy can begin behind others.
  const said = JSON.stringify([kind, payload]);
  return ids.filter((id) => id !== '').map((id) => shortHash(`${id} ${said}`));
}

/** A part of a second, or the time of the answer to a request: at any other time two may have been said. */
function momentOf({ timestamp, requestId }: JsonObject): string | undefined {
  if (typeof timestamp !== 'string') return undefined;
  const isOne = typeof requestId === 'string' || /\.\d*[1-9]/.test(timestamp);
  return isOne ? JSON.stringify([timestamp, requestId]) : undefined;
}
