import type { SessionInfo, SqliteTapeStore } from '@tapedeck/tape';

const letters = 'abcdefghijklmnopqrstuvwxyz';

/** Length from which no person typed a name. */
const typedMax = 64;

/**
 * The names that differ from a name as by a slip of the fingers: by one letter more, less or other, or by two letters
 * swapped, in a word of at least four letters. Names that are counted (`step-1`, `step-2`, `a`, `b`) are no slips of
 * each other.
 */
function* slips(name: string): Generator<string> {
  if (name.length > typedMax) return;
  for (const { 0: word, index } of name.matchAll(/[A-Za-z]{4,}/g)) {
    const [before, after] = [name.slice(0, index), name.slice(index + word.length)];
    for (let i = 0; i <= word.length; i += 1) {
      const [head, here, next, tail] = [word.slice(0, i), word[i], word[i + 1], word.slice(i + 1)];
      for (const letter of letters) {
        yield `${before}${head}${letter}${word.slice(i)}${after}`;
        if (here !== undefined && letter !== here.toLowerCase())
          yield `${before}${head}${letter}${tail}${after}`;
      }
      if (here !== undefined && word.length > 4) yield `${before}${head}${tail}${after}`;
      if (here !== undefined && next !== undefined && here !== next)
        yield `${before}${head}${next}${here}${word.slice(i + 2)}${after}`;
    }
  }
}

/**
 * The session that verbs which read find by the beginning of its name, unless the name only counts on: `step-1` is not
 * the beginning of `step-10`.
 */
function begunBy(store: SqliteTapeStore, name: string): SessionInfo | undefined {
  const [only, another] = name === '' ? [] : store.sessions.list({ prefix: name, all: true, limit: 2 });
  if (only?.lifecycle !== 'active' || another !== undefined) return undefined;
  const whole = [only.session, ...only.aliases].find((one) => one.startsWith(name));
  return whole !== undefined && /^\d+$/.test(whole.slice(name.length)) ? undefined : only;
}

/**
 * The active sessions that a missing name is the beginning or a slip of, at most three; none for the name of a session.
 */
export function similarSessions(store: SqliteTapeStore, name: string): readonly string[] {
  if (store.sessions.find(name) !== undefined) return [];
  const begun = begunBy(store, name);
  const found = new Set<string>(begun === undefined ? [] : [begun.session]);
  for (const other of slips(name)) {
    const info = store.sessions.find(other);
    if (info?.lifecycle === 'active') found.add(info.session);
    if (found.size === 3) break;
  }
  return [...found];
}
