import { ConfigError, UsageError } from '../errors/kinds.ts';
import { findHome } from '../home.ts';
import type { Io } from '../io.ts';
import { isConfigForeign, isForeign } from '../origin.ts';
import { verbName } from '../verbs/index.ts';
import { withLiteralWords } from './literal-words.ts';
import { verbAt } from './verb-in.ts';

type Place = Pick<Io, 'env' | 'cwd'>;

/**
 * Puts the words that an alias stands for in its place. A line that names a verb stays as it is, and no file is read for
 * it; so does one that requests help, which is on the alias.
 * @throws ConfigError for an alias that came with the home; UsageError for one that stands for no verb
 */
export async function withAlias(argv: readonly string[], io: Place): Promise<readonly string[]> {
  const at = verbAt(argv);
  const name = argv[at];
  if (name === undefined || isOwnWord(name) || argv.includes('--help') || argv.includes('-h')) return argv;
  const { aliasFault, readAliases, splitWords } = await import('../config/aliases.ts');
  const home = findHome(homeIn(argv), io);
  const aliases = await readAliases(home);
  const text = aliases.get(name);
  if (text === undefined) return argv;
  if (isForeign(home, io) || isConfigForeign(home, io))
    throw new ConfigError(
      'CLI_FOREIGN_HOME',
      `cannot run '${name}': it is an alias of the tape home '${home.dir}', which came from elsewhere or has changed since it was trusted`,
      { data: { home: home.dir, alias: name, text } },
    );
  const fault = aliasFault(name, text, { isVerb: isOwnWord, aliases });
  const words = splitWords(text);
  if (fault !== undefined || typeof words === 'string')
    throw new UsageError(`cannot run the alias ${name}: ${fault}`, {
      data: { alias: name, text },
      hint: `set it anew: tape config set alias.${name} 'VERB OPTIONS'; or remove it: tape config unset alias.${name}`,
    });
  return [...argv.slice(0, at), ...withLiteralWords(words), ...argv.slice(at + 1)];
}

/** The aliases that a line can name; none where they cannot be read, or are not this user's. */
export async function aliasesFor(argv: readonly string[], io: Place): Promise<ReadonlyMap<string, string>> {
  try {
    const home = findHome(homeIn(argv), io);
    const { readAliases } = await import('../config/aliases.ts');
    const aliases = await readAliases(home);
    const areOwn = aliases.size > 0 && !isForeign(home, io) && !isConfigForeign(home, io);
    return new Map(areOwn ? [...aliases].filter(([name]) => !isOwnWord(name)) : []);
  } catch {
    return new Map();
  }
}

/** The value of `--home DIR` or `--home=DIR` in a line. */
export function homeIn(argv: readonly string[]): string | undefined {
  const at = argv.findIndex((word) => /^--home(?:=|$)/.test(word));
  return at === -1 ? undefined : (/=(.+)$/.exec(argv[at] ?? '')?.[1] ?? argv[at + 1]);
}

/** Whether a word is a verb, or one that the command reads itself. */
function isOwnWord(word: string): boolean {
  return verbName(word) !== undefined || word === 'help' || word === '__complete';
}
