import type { SqliteTapeStore } from '@tapedeck/tape';
import { aliasesFor, homeIn, withAlias } from '../command-line/aliased.ts';
import { findHome, openForReading } from '../home.ts';
import type { Io } from '../io.ts';
import { offeredPoints, offeredSessions } from '../session/offered.ts';
import { verbWords } from '../verbs/index.ts';
import { askedBy } from './asked.ts';

/**
 * Prints what the last word of an unfinished command line can be, one text a line. A failure prints
 * nothing: the user has not finished typing.
 */
export async function complete(words: readonly string[], io: Io): Promise<void> {
  const current = words.at(-1) ?? '';
  try {
    const typed = [...(await withAlias(words.slice(0, -1), io)), current];
    const asked = await askedBy(typed);
    const found =
      asked.kind === 'words'
        ? asked.words
        : asked.kind === 'verbs'
          ? [...verbWords, ...(await aliasesFor(typed, io)).keys()]
          : asked.kind === 'places'
            ? placesIn(typed, io)
            : [];
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

/** The points of the session before the last `@`. */
function points(store: SqliteTapeStore, text: string): readonly string[] {
  const at = text.lastIndexOf('@');
  const info = at < 1 ? undefined : store.sessions.find(text.slice(0, at));
  if (info === undefined) return [];
  return offeredPoints(store, info.id).map((name) => `${text.slice(0, at)}@${name}`);
}
