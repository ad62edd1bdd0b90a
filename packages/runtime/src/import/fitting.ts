import { type Draft, type Json, TapeError } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { assertDraft, entryBytesMax } from '@tapedeck/tape/store';

/** Characters that take at most this many bytes in JSON. */
const bytesOfCharacter = 6;

/** A text as long as this is left out of an entry that is too large. */
const longText = 64 * 1024;

/**
 * A draft as an entry can hold it: the long texts of one that is too large give way to their lengths, and its meta says how
 * large it was. Files are kept beside an entry, and count for nothing here. Pure.
 */
export function fitting(draft: Draft): Draft {
  const size = charactersIn(draft.payload);
  if (size * bytesOfCharacter < entryBytesMax || fits(draft)) return draft;
  const payload = withoutLongTexts(draft.payload as Json);
  return { ...draft, payload, meta: { ...draft.meta, omittedBytes: size } };
}

function fits(draft: Draft): boolean {
  try {
    assertDraft(draft);
    return true;
  } catch (error) {
    if (error instanceof TapeError && error.code === 'TAPE_BAD_ENTRY') return false;
    throw error;
  }
}

function charactersIn(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (Array.isArray(value)) return value.reduce((sum: number, one) => sum + charactersIn(one) + 1, 0);
  // Bytes are kept beside the entry.
  if (!isObject(value) || ArrayBuffer.isView(value)) return 8;
  return Object.entries(value).reduce((sum, [name, field]) => sum + name.length + charactersIn(field), 0);
}

function withoutLongTexts(value: Json): Json {
  if (typeof value === 'string')
    return value.length < longText ? value : `[${value.length} characters, too many for an entry]`;
  if (Array.isArray(value)) return value.map(withoutLongTexts);
  if (!isObject(value) || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, withoutLongTexts(field)]));
}
