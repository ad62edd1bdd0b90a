import type { Entry } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { sha256 } from '@tapedeck/tape/store';

/** Ids that tools give to records: no other record has such a one. */
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

/** The key of a record that has no id: its place in the file, which one of any other file has, too. */
const ofPlace = /\bline:\d+/;

/** Some fields quote no more of a text than its beginning. */
const quotedMax = 100;

/**
 * What the records of a source say, by which those of a copy are known. A program that copies records may change where and in
 * which session they were made, and their ids.
 */
export class RecordedContent {
  readonly #ids = new Set<string>();
  readonly #said = new Set<string>();
  readonly #texts = new Set<string>();

  add(entry: Entry): void {
    const key = keyOf(entry);
    if (uuid.test(key)) this.#ids.add(key);
    if (entry.payload === null) return;
    for (const mark of marksOf(entry)) this.#said.add(mark);
    for (const { text, isSaid } of textsIn(entry.payload)) if (isSaid) this.addText(text);
  }

  addText(text: string): void {
    this.#texts.add(textMark(text));
  }

  hasText(text: string): boolean {
    return this.#texts.has(textMark(text));
  }

  /** Whether an entry was made of one of the records, or of a copy of it. */
  has(entry: Entry): boolean {
    return this.#ids.has(keyOf(entry)) || marksOf(entry).some((mark) => this.#said.has(mark));
  }

  /** Whether an entry that no model sees repeats something of the records, as the last prompt of a session does. */
  isIn({ kind, payload }: Entry): boolean {
    const isSeen = kind !== 'event' && !kind.startsWith('x-');
    return !isSeen && textsIn(payload).some(({ text }) => this.hasText(text));
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

function textMark(text: string): string {
  return markOf(text.replace(/\s+/g, ' ').trim().slice(0, quotedMax));
}

function markOf(text: string): string {
  return sha256(text).slice(0, 24);
}

interface FoundText {
  readonly text: string;
  /** Whether it is more than an id, or a word of the format. */
  readonly isSaid: boolean;
}

function textsIn(value: unknown, name = ''): readonly FoundText[] {
  if (typeof value === 'string') return [{ text: value, isSaid: name === 'text' || /\s/.test(value.trim()) }];
  if (Array.isArray(value)) return value.flatMap((one) => textsIn(one, name));
  if (!isObject(value) || ArrayBuffer.isView(value)) return [];
  return Object.entries(value).flatMap(([field, one]) => textsIn(one, field));
}
