import type { SqliteTapeStore } from '@tapedeck/tape';
import { findHome, openForReading } from '../home.ts';
import type { Io } from '../io.ts';
import { offeredPoints, offeredSessions } from '../session/offered.ts';
import { askedBy } from './asked.ts';

/**
 * Prints what the last word of an unfinished command line can be, one text a line. A failure prints
 * nothing: the user has not finished typing.
 */
export async function complete(words: readonly string[], io: Io): Promise<void> {
  const current = words.at(-1) ?? '';
  try {
    const asked = await askedBy(words);
    const found = asked.kind === 'words' ? asked.words : asked.kind === 'places' ? placesIn(words, io) : [];
    const lines = found.filter((text) => text.startsWith(current) && !/\p{Cc}/u.test(text));
    await io.out(lines.map((line) => `${line}\n`).join(''));
  } catch {
    // A home that cannot be read offers nothing.
  }
}

function placesIn(words: readonly string[], io: Io): readonly string[] {
  const current = words.at(-1) ?? '';
  using store = openForReading(findHome(homeIn(words), io), io);
  return [...offeredSessions(store, current), ...points(store, current)];
}

/** The value of `--home DIR` or `--home=DIR`. */
function homeIn(words: readonly string[]): string | undefined {
  const at = words.findIndex((word) => /^--home(?:=|$)/.test(word));
  return at === -1 ? undefined : (/=(.+)$/.exec(words[at] ?? '')?.[1] ?? words[at + 1]);
}

/** The points of the session before the last `@`. */
function points(store: SqliteTapeStore, text: string): readonly string[] {
  const at = text.lastIndexOf('@');
  const info = at < 1 ? undefined : store.sessions.find(text.slice(0, at));
  if (info === undefined) return [];
  return offeredPoints(store, info.id).map((name) => `${text.slice(0, at)}@${name}`);
}
