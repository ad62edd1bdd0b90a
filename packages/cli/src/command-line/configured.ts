import { findConfig } from '../config/find.ts';
import { findHome } from '../home.ts';
import type { Io } from '../io.ts';
import { namesServer } from '../server-home.ts';
import { verbNamed } from '../verbs/index.ts';
import { withAlias } from './aliased.ts';
import { withLiteralWords } from './literal-words.ts';
import { plainLine } from './plain.ts';
import { namedIn } from './verb-in.ts';

/**
 * Whether a command line needs the installed packages, and not their bundle: it can load a configuration, since its verb
 * takes one, and one is named or found; or its home is on a server.
 */
export async function needsPackages(line: readonly string[], io: Io): Promise<boolean> {
  // An alias that cannot be used is reported when the line runs.
  const argv = await withAlias(withLiteralWords(line), io).catch(() => []);
  const name = namedIn(argv);
  // `tape` alone shows the home, too.
  const usesHome = line.length === 0 || name !== undefined || line[0] === '__complete';
  if (usesHome && namesServer([...line, ...argv], io)) return true;
  if (name === 'demo') return false;
  const verb = name === undefined ? undefined : await verbNamed(name);
  if (verb?.options === undefined || !Object.hasOwn(verb.options, 'config')) return false;
  const { values } = (await plainLine(argv)) ?? {};
  // Only yargs knows whether another line names one.
  if (values === undefined) return true;
  if (values.config !== undefined) return values.config !== false;
  return findConfig(io, findHome(values.home as string | undefined, io)) !== undefined;
}
