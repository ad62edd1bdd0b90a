/** Marks a word after `--`. No argument of a process contains NUL. */
const mark = '\0';

/**
 * Reads `--`, which ends the options: the words after it are arguments, also those that begin with a dash. yargs
 * would put them elsewhere, so each is marked until yargs has parsed the line. A `-` still means stdin. A line that is
 * being typed stays as it is: its last word can be the beginning of an option.
 */
export function withLiteralWords(argv: readonly string[]): readonly string[] {
  if (argv[0] === '__complete') return argv;
  const end = argv.indexOf('--');
  if (end === -1) return argv;
  const literal = argv.slice(end + 1).map((word) => (/^-./s.test(word) ? mark + word : word));
  return [...argv.slice(0, end), ...literal];
}

/** Returns parsed arguments, or a message about them, without the marks. */
export function unmarked<T extends Readonly<Record<string, unknown>>>(args: T): T {
  const plain = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(plain);
    return typeof value === 'string' ? value.replaceAll(`${mark}-`, '-') : value;
  };
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, plain(value)])) as T;
}
