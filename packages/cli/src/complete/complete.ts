import type { SqliteTapeStore } from '@tapedeck/tape';
import { findHome, openForReading } from '../home.ts';
import type { Io } from '../io.ts';
import { askedBy } from './asked.ts';

/** Number of sessions, and of anchors, that are offered. */
const offeredMax = 100;

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
  return [...sessions(store, current), ...points(store, current)];
}

/** The value of `--home DIR` or `--home=DIR`. */
function homeIn(words: readonly string[]): string | undefined {
  const at = words.findIndex((word) => /^--home(?:=|$)/.test(word));
  return at === -1 ? undefined : (/=(.+)$/.exec(words[at] ?? '')?.[1] ?? words[at + 1]);
}

/** Sessions with names and aliases that begin with a text: the newest ones for an empty text. */
function sessions(store: SqliteTapeStore, text: string): readonly string[] {
  const found = store.sessions.list(
    text === '' ? { limit: offeredMax } : { prefix: text, all: true, limit: offeredMax },
  );
  return found.flatMap(({ session, aliases }) => [session, ...(text === '' ? [] : aliases)]);
}

/** The head and the anchors of the session before the last `@`. */
function points(store: SqliteTapeStore, text: string): readonly string[] {
  const at = text.lastIndexOf('@');
  const info = at < 1 ? undefined : store.sessions.find(text.slice(0, at));
  if (info === undefined) return [];
  const anchors = [...store.entries.read(info.id, { kind: 'anchor', last: offeredMax })];
  const names = new Set(anchors.flatMap(({ name }) => name ?? []));
  return ['head', ...names].map((name) => `${text.slice(0, at)}@${name}`);
}
