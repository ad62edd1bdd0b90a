/** A word of a command that no shell would change. */
const plainWord = /^[\p{L}\p{N}_@%+=:,./-]+$/u;

/** A command text that is nothing but words: plain ones, and quoted ones without anything that a shell replaces. */
const wordsOnly = /^(?:[\p{L}\p{N}_@%+=:,./-]|'[^'\p{C}]*'|"[^"$`\\!\p{C}]*"|[ \t])+$/u;
const word = /(?:[^\s'"]|'[^']*'|"[^"]*")+/g;

/**
 * The words of a command text. A text for which a shell would do more than split it is a call of that shell:
 * `git log; rm x` is `sh -c 'git log; rm x'`.
 */
export function wordsOf(text: string): readonly string[] {
  const words = wordsOnly.test(text) ? (text.match(word) ?? []) : [];
  const [program] = words;
  // A first word with `=` sets a variable.
  if (program === undefined || program.includes('=')) return ['sh', '-c', text];
  return words.map((one) => one.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single, double) => single ?? double));
}

/** The words as one text, as one would type them in a shell. */
export function commandText(words: readonly string[]): string {
  return words.map((one) => (plainWord.test(one) ? one : `'${one.replaceAll("'", `'\\''`)}'`)).join(' ');
}
