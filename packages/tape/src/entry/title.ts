import { isObject } from './json.ts';

/** The name of the event that gives a session its title, where it was created without one. */
export const titleEvent = 'session/title';

/** The name of the event that gives a session the title of a rename, which comes before that of its creation. */
export const renamedEvent = 'session/renamed';

/** The number of characters of a title that is not given by a user. */
const titleMax = 80;

/** Control characters, and those that turn the direction of the text around them. */
const unprintable = /[\p{Cc}\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu;

/**
 * A text as a title: one line of at most 80 characters, without control characters, cut at a word where it can be.
 * Undefined for a text of which nothing is left. Pure.
 */
export function titleLine(text: string): string | undefined {
  const line = text
    .slice(0, 5 * titleMax)
    .toWellFormed()
    .replace(unprintable, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  const characters = [...line.slice(0, 2 * titleMax)];
  if (characters.length <= titleMax) return line === '' ? undefined : line;
  const cut = characters.slice(0, titleMax - 1).join('');
  const word = cut.lastIndexOf(' ');
  return `${(word > titleMax / 2 ? cut.slice(0, word) : cut).trimEnd()}…`;
}

/** The title in the payload of such an event, which any writer can have appended. Pure. */
export function titleIn(payload: unknown): string | undefined {
  return isObject(payload) && typeof payload.title === 'string' ? titleLine(payload.title) : undefined;
}
