/** Scripts whose letters are joined in writing. */
const cursive = /^[\p{L}\p{M}\u0640]$/u;
const cursiveScripts = /^[\p{scx=Arab}\p{scx=Syrc}\p{scx=Nkoo}\p{scx=Mong}\p{scx=Mand}]$/u;

/** Marks of Indian scripts that take the vowel from a consonant, and join it with the next one. */
const virama =
  /^[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u1039\u103a\u17d2\u1b44\ua9c0]$/u;

/** Emoji that are joined, and a flag of a part of a country, which tag characters name. */
const joinedEmoji =
  /\p{Extended_Pictographic}(?:\ufe0f|\p{EMod})?(?:\u200d\p{Extended_Pictographic}(?:\ufe0f|\p{EMod})?)+|\u{1f3f4}[\u{e0020}-\u{e007f}]+/gu;

/** No such sequence has more code units. */
const unitsMax = 32;

/**
 * Whether an invisible character of a text is needed there: one that joins emoji to one that Unicode recommends, or that
 * changes how the letters beside it are written. Elsewhere it changes nothing that is seen, and can only mislead. Pure.
 * @param at the place of the character, in code units
 */
export function isJoining(text: string, at: number): boolean {
  const code = text.codePointAt(at) ?? 0;
  if (code >= 0xe0020 && code <= 0xe007f) return isInEmoji(text, at);
  if (code !== 0x200c && code !== 0x200d) return false;
  const before = lastOf(text.slice(Math.max(0, at - 2), at));
  const after = String.fromCodePoint(text.codePointAt(at + 1) ?? 0x20);
  if (isCursive(before)) return isCursive(after) || (code === 0x200d && !/\p{Cf}/u.test(after));
  if (virama.test(before)) return !/\p{Cf}/u.test(after);
  if (virama.test(after) && /^\p{L}$/u.test(before)) return true;
  return code === 0x200d && isInEmoji(text, at);
}

function lastOf(text: string): string {
  return Array.from(text).at(-1) ?? '';
}

function isCursive(c: string): boolean {
  return cursive.test(c) && cursiveScripts.test(c);
}

function isInEmoji(text: string, at: number): boolean {
  const start = Math.max(0, at - unitsMax);
  for (const { 0: found, index } of text.slice(start, at + unitsMax).matchAll(joinedEmoji))
    if (start + index < at && at < start + index + found.length)
      return isRecommended(found) || isRecommended(presented(found));
  return false;
}

function isRecommended(sequence: string): boolean {
  return /^[\p{RGI_Emoji_ZWJ_Sequence}\p{RGI_Emoji_Tag_Sequence}]$/v.test(sequence);
}

/** The sequence with the variation selectors that many programs leave out. */
function presented(sequence: string): string {
  return sequence.replace(
    /(?!\p{Emoji_Presentation})\p{Extended_Pictographic}(?![\ufe0f\p{EMod}])/gu,
    '$&\ufe0f',
  );
}

const scripts = 'Arab Syrc Nkoo Mong Mand Deva Beng Guru Gujr Orya Taml Telu Knda Mlym Sinh Mymr Khmr'.split(
  ' ',
);
const joinable = new RegExp(
  `(?:\\p{Extended_Pictographic}|\\p{EMod}|\\u200c|\\u200d|\\ufe0f|[\\u{e0020}-\\u{e007f}]|${scripts
    .map((script) => `\\p{scx=${script}}`)
    .join('|')})*[\\ud800-\\udbff]?$`,
  'u',
);

/**
 * Where the end of a text begins that what follows may be joined with: its length, when nothing is. Pure.
 */
export function joinableEnd(text: string): number {
  const end = text.slice(-2 * unitsMax);
  const from = joinable.exec(end)?.index ?? end.length;
  // A word without an end is shown as it comes.
  return from === 0 && end.length === 2 * unitsMax ? text.length : text.length - end.length + from;
}
