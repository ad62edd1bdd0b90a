import type { HomeStore } from '@tapedeck/tape';
import { aliasesFor, homeIn, withAlias } from '../command-line/aliased.ts';
import { withLiteralWords } from '../command-line/literal-words.ts';
import { remotesIn } from '../config/remotes.ts';
import { topics } from '../help/topics/index.ts';
import { findHome, openForReading } from '../home.ts';
import type { Io } from '../io.ts';
import { offeredPoints, offeredSessions } from '../session/offered.ts';
import { verbWords } from '../verbs/index.ts';
import { type Asked, askedBy } from './asked.ts';

/**
 * Prints what the last word of an unfinished command line can be, one text a line. A failure prints
 * nothing: the user has not finished typing.
 */
export async function complete(given: readonly string[], io: Io): Promise<void> {
  const words = quotedWords(given);
  const before = words.slice(0, -1).map((word) => asPassed(word, io));
  const line = [...before, words.at(-1) ?? ''];
  // The word that is being typed ends no options: it is the beginning of one.
  const read = before.includes('--') ? withLiteralWords(line) : line;
  const current = read.at(-1) ?? '';
  try {
    const typed = [...(await withAlias(read.slice(0, -1), io)), current];
    const asked = await askedBy(typed);
    const found = asked.kind === 'words' ? asked.words : await wordsFor(asked, typed, io);
    const lines = found.filter((text) => text.startsWith(current) && !/\p{Cc}/u.test(text));
    await io.out(lines.map((line) => `${line}\n`).join(''));
  } catch {
    // A home that cannot be read offers nothing.
  }
}

/** Words as the user has typed them: bash splits one in quotes at its blanks. */
function quotedWords(words: readonly string[]): readonly string[] {
  const whole: string[] = [];
  let begun: string | undefined;
  for (const word of words) {
    const text: string = begun === undefined ? word : `${begun} ${word}`;
    begun = isOpen(text) ? text : undefined;
    if (begun === undefined) whole.push(text);
  }
  return begun === undefined ? whole : [...whole, begun];
}

/** Whether a word ends inside of quotes, or with a backslash, which takes the blank behind it into the word. */
function isOpen(word: string): boolean {
  return !/^(?:[^\\'"]|\\.|'[^']*'|"(?:[^\\"]|\\.)*")*$/s.test(word);
}

/** A word as a shell passes it: the scripts for shells give words as the user has typed them. */
function asPassed(word: string, { env }: Io): string {
  return word
    .replace(/^~(?=\/|$)/, env.HOME ?? '~')
    .replace(/\$(?:\{(\w+)\}|(\w+))/g, (whole, braced, bare) => env[braced ?? bare] ?? whole)
    .replace(/\\(.)|["']/g, '$1');
}

async function wordsFor(
  asked: Exclude<Asked, { readonly kind: 'words' }>,
  typed: readonly string[],
  io: Io,
): Promise<readonly string[]> {
  const { kind } = asked;
  if (kind === 'other') return [];
  if (kind === 'points') return await pointsOf(asked.place, typed, io);
  if (kind === 'remotes') return (await remotesIn(findHome(homeIn(typed), io))).map(({ name }) => name);
  if (kind === 'places') return await placesIn(typed, io);
  const verbs = [...verbWords, ...(await aliasesFor(typed, io)).keys()];
  return kind === 'verbs' ? [...verbs, 'help'] : [...verbs, ...topics.map(({ name }) => name)];
}

async function placesIn(words: readonly string[], io: Io): Promise<readonly string[]> {
  const current = words.at(-1) ?? '';
  using store = await openForReading(findHome(homeIn(words), io), io);
  return [...offeredSessions(store, current), ...points(store, current)];
}

/** The points of the session that a line names, also where it names one of its points. */
async function pointsOf(place: string, words: readonly string[], io: Io): Promise<readonly string[]> {
  using store = await openForReading(findHome(homeIn(words), io), io);
  const info = store.sessions.find(place) ?? store.sessions.find(place.slice(0, place.lastIndexOf('@')));
  return info === undefined ? [] : offeredPoints(store, info.id);
}

/** The points of the session before the last `@`; behind `..` they end a range. */
function points(store: HomeStore, text: string): readonly string[] {
  const at = text.lastIndexOf('@');
  const info = at < 1 ? undefined : store.sessions.find(text.slice(0, at));
  if (info === undefined) return [];
  const range = text.lastIndexOf('..');
  const before = text.slice(0, range > at ? range + 2 : at + 1);
  return offeredPoints(store, info.id).map((name) => `${before}${name}`);
}
