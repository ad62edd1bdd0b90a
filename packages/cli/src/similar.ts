import type { HomeStore } from '@tapedeck/tape';

const letters = 'abcdefghijklmnopqrstuvwxyz';

/** Length from which no person typed a name. */
const typedMax = 64;

/** Letters of a word in which a slip is likelier than another word: `fix` is no slip of `fox`. */
const wordMin = 4;

/**
 * The names that differ from a name as by a slip of the fingers: by one letter more, less or other, or by two letters
 * swapped, in a word that has at least four letters in one of both names.
 */
function* slips(name: string): Generator<string> {
  if (name.length > typedMax) return;
  for (const { 0: word, index } of name.matchAll(/[A-Za-z]{3,}/g)) {
    const [before, after] = [name.slice(0, index), name.slice(index + word.length)];
    const isLong = word.length >= wordMin;
    for (let i = 0; i <= word.length; i += 1) {
      const [head, here, next, tail] = [word.slice(0, i), word[i], word[i + 1], word.slice(i + 1)];
      for (const letter of letters) {
        yield `${before}${head}${letter}${word.slice(i)}${after}`;
        if (isLong && here !== undefined && letter !== here.toLowerCase())
          yield `${before}${head}${letter}${tail}${after}`;
      }
      if (!isLong || here === undefined) continue;
      yield `${before}${head}${tail}${after}`;
      if (next !== undefined && here !== next)
        yield `${before}${head}${next}${here}${word.slice(i + 2)}${after}`;
    }
  }
}

/** How many names that begin with another are looked at. */
const begunMax = 20;

/**
 * The sessions with a name that begins with a name, unless it only counts on: `step-1` is not the beginning of `step-10`,
 * nor `agent` that of `agent-2`. A name that begins with one of the others says no more: `main-check` beside `main`.
 */
function begunBy(store: HomeStore, name: string): readonly string[] {
  if (name === '') return [];
  const begun = store.sessions.list({ prefix: name, all: true, limit: begunMax }).filter((info) => {
    const whole = [info.session, ...info.aliases].find((one) => one.startsWith(name)) ?? '';
    return info.lifecycle === 'active' && !/^[-_.:/#]?\d+$/.test(whole.slice(name.length));
  });
  const names = begun.map(({ session }) => session).toSorted();
  return names.filter((one) => !names.some((other) => other !== one && one.startsWith(other)));
}

/** How many names an error or a question has. */
const namedMax = 3;

/**
 * The active sessions that a missing name is the beginning or a slip of, at most three; none for the name of a session.
 */
export function similarSessions(store: HomeStore, name: string): readonly string[] {
  if (store.sessions.find(name) !== undefined) return [];
  const found = new Set<string>(begunBy(store, name).slice(0, namedMax));
  for (const other of slips(name)) {
    if (found.size >= namedMax) break;
    const info = store.sessions.find(other);
    if (info?.lifecycle === 'active') found.add(info.session);
  }
  return [...found];
}
