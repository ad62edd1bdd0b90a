/**
 * What the texts of a random history hold, so that each can be found again in a view: a letter that says what it is,
 * and a number that no other has.
 */
const kinds = {
  /** A text of the user, of the assistant, or of an intention. */
  said: 'w',
  /** The summary of a boundary, or the state of an anchor. */
  state: 's',
  /** The output of a call of ours. */
  output: 'r',
  /** The result of a provider's own tool. */
  found: 'p',
  thought: 't',
  /** Content that no view shows: events, `ui` and `x-` entries, instructions, asides. */
  unseen: 'u',
} as const;

export type WordKind = keyof typeof kinds;

/** Makes words; a number is given once. */
export class Words {
  #n = 0;

  next(kind: WordKind): string {
    this.#n += 1;
    return `~${kinds[kind]}${this.#n}.`;
  }
}

/** The words of a kind in a text, in order. */
export function wordsOf(kind: WordKind, text: string): readonly string[] {
  return text.match(patterns[kind]) ?? [];
}

const patterns = Object.fromEntries(
  Object.entries(kinds).map(([kind, letter]) => [kind, new RegExp(`~${letter}\\d+\\.`, 'g')]),
) as Record<WordKind, RegExp>;

/** The words of a text that it has more than once, whatever they are. */
export function repeated(text: string): readonly string[] {
  const all: readonly string[] = text.match(/~[wsrpt]\d+\./g) ?? [];
  if (new Set(all).size === all.length) return [];
  return all.filter((word, i) => all.indexOf(word) !== i);
}

/** Content that only one provider can read, and that provider. */
export const sealedFor = (provider: string, n: string): string => `sealed:${provider}:${n}`;

/** For whom there is something sealed in a text. */
export function sealsIn(text: string): ReadonlySet<string> {
  return new Set(Array.from(text.matchAll(/sealed:([a-z-]+):/g), ([, provider = '']) => provider));
}
