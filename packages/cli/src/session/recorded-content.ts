import { hasOwnId, QuotedTexts } from '@tapedeck/runtime/internal';
import type { Entry } from '@tapedeck/tape';
import { sha256 } from '@tapedeck/tape/store';

/** The key of a record that has no id: its place in the file, which one of any other file has, too. */
const ofPlace = /\bline:\d+/;

/**
 * What the records of a source say, by which those of a copy are known. A program that copies records may change where and in
 * which session they were made, and their ids.
 */
export class RecordedContent {
  readonly #ids = new Set<string>();
  readonly #said = new Set<string>();
  readonly #texts = new QuotedTexts();

  add(entry: Entry): void {
    const key = keyOf(entry);
    if (hasOwnId(key)) this.#ids.add(key);
    if (entry.payload === null) return;
    for (const mark of marksOf(entry)) this.#said.add(mark);
    this.#texts.addSaid(entry.payload);
  }

  addText(text: string): void {
    this.#texts.add(text);
  }

  hasText(text: string): boolean {
    return this.#texts.has(text);
  }

  /** Whether an entry was made of one of the records, or of a copy of it. */
  has(entry: Entry): boolean {
    return this.#ids.has(keyOf(entry)) || marksOf(entry).some((mark) => this.#said.has(mark));
  }

  /** Whether an entry that no model sees repeats something of the records, as the last prompt of a session does. */
  isIn({ kind, payload }: Entry): boolean {
    const isSeen = kind !== 'event' && !kind.startsWith('x-');
    return !isSeen && this.#texts.areIn(payload);
  }
}

/** The key of the record. What was written again has that of the first time. */
function keyOf({ key = '' }: Entry): string {
  return key.replace(/~again\d+$/, '');
}

/** What an entry is known by wherever it is: that it says the same at the same time, or under the same id. */
function marksOf(entry: Entry): readonly string[] {
  const { kind, name, payload, meta } = entry;
  if (payload === null) return [];
  const key = keyOf(entry);
  const ids = [meta.timestamp, ofPlace.test(key) ? undefined : key].filter((id) => typeof id === 'string');
  const said = JSON.stringify([kind, name, payload]);
  return ids.filter((id) => id !== '').map((id) => markOf(`${id} ${said}`));
}

function markOf(text: string): string {
  return sha256(text).slice(0, 24);
}
