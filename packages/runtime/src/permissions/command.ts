/** A word of a command that no shell would change. */
const plainWord = /^[\p{L}\p{N}_@%+=:,./-]+$/u;

/** A command text that is nothing but words: plain ones, and quoted ones without anything that a shell replaces. */
const wordsOnly = /^(?:[\p{L}\p{N}_@%+=:,./-]|'[^'\p{C}]*'|"[^"$`\\!\p{C}]*"|[ \t])+$/u;
const word = /(?:[^\s'"]|'[^']*'|"[^"]*")+/g;

/** The commands that a shell carries out itself, and the words of its own constructs. No programs have these names. */
const ofShell: ReadonlySet<string> = new Set(
  [
    '. : alias bg break builtin cd command continue declare eval exec exit export fc fg getopts hash jobs let local popd',
    'pushd read readonly return set shift shopt source times trap type typeset ulimit umask unalias unset wait',
    'case do done elif else esac fi for function if in select then time until while',
  ].flatMap((line) => line.split(' ')),
);

/**
 * The words of a command text. A text for which a shell would do more than split it and start a program is a call of that
 * shell: `git log; rm x` is `sh -c 'git log; rm x'`, and `exit 3` is `sh -c 'exit 3'`.
 */
export function wordsOf(text: string): readonly string[] {
  const words = wordsOnly.test(text) ? (text.match(word) ?? []) : [];
  const [program] = words;
  // A first word with `=` sets a variable.
  if (program === undefined || program.includes('=') || ofShell.has(unquoted(program)))
    return ['sh', '-c', text];
  return words.map(unquoted);
}

function unquoted(one: string): string {
  return one.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single, double) => single ?? double);
}

/** The words as one text, as one would type them in a shell. */
export function commandText(words: readonly string[]): string {
  return words.map((one) => (plainWord.test(one) ? one : `'${one.replaceAll("'", `'\\''`)}'`)).join(' ');
}
