import { existsSync } from 'node:fs';
import { dirname, join, parse, relative, sep } from 'node:path';
import type { Ignore, Options } from 'ignore';
import { openFile } from '../lines/index.ts';
import { realBeginning, withRealBeginning } from './real.ts';

/** What is left out, in the patterns of `.gitignore`. */
export interface Excludes {
  /** Whether a pattern can leave out what is right in a directory: nearly always none can. */
  mayExcludeIn(directory: string): boolean;
  /** Whether a folder or file is left out, by its whole path; `isFolder` so that a pattern may end in a slash. */
  excludes(path: string, isFolder: boolean): boolean;
  /** Whether the sessions of a working directory are left out: as if each were a file in it. */
  excludesProject(directory: string): boolean;
  /** The working directories that a `.tapeignore` leaves out, of those that were looked at. */
  readonly ignored: Ignored;
}

/**
 * The directory of the `.tapeignore` that leaves out the sessions of a working directory, by that. Their transcripts lie
 * elsewhere: they are still there when the working directory is removed, with its `.tapeignore`.
 */
type Ignored = ReadonlyMap<string, string>;

/** The name of a file with patterns for what lies beside and below it. */
const ignoreFile = '.tapeignore';

/** A file of a working directory stands for each session of it. */
const anySession = 'session.jsonl';

/**
 * The patterns of a configuration, and those in `.tapeignore` files. A configured pattern that begins with `/` or `~/` is a
 * path, also where links lead to it; any other one applies at each depth.
 */
export async function makeExcludes(
  patterns: readonly string[],
  { home }: { readonly home: string },
  before: Ignored = new Map(),
): Promise<Excludes> {
  const make = await makerOfRules();
  const rulesOf: MakeRules = (lines) => make({ allowRelativePaths: true }).add(lines.map(oneForm));
  const texts = patterns
    .map((pattern) => pattern.replace(/^(!?)~(?=\/|$)/, `$1${slashes(home)}`).replace(/\/{2,}/g, '/'))
    .map(atEachDepth)
    .flatMap(withRealBeginning);
  const configured: readonly Listed[] = texts.length === 0 ? [] : [{ rules: rulesOf(texts) }];
  const above = new Map<string, readonly Listed[]>();
  /** The lists that count for what is in a directory: nearly always none. */
  const listsFor = (directory: string): readonly Listed[] => {
    const known = above.get(directory);
    if (known !== undefined) return known;
    const outer = dirname(directory) === directory ? [] : listsFor(dirname(directory));
    const rules = rulesIn(join(directory, ignoreFile), rulesOf);
    const lists = rules === undefined ? outer : [...outer, { directory, rules }];
    above.set(directory, lists);
    return lists;
  };
  const listFor = (path: string, isFolder: boolean): Listed | undefined => {
    const end = isFolder ? '/' : '';
    return [...listsFor(dirname(path)), ...configured].find(({ directory, rules }) => {
      const below = oneForm(slashes(relative(directory ?? parse(path).root, path)));
      return below !== '' && rules.ignores(`${below}${end}`);
    });
  };
  const excludes = (path: string, isFolder: boolean) => listFor(path, isFolder) !== undefined;
  const ignored = new Map(before);
  const projects = new Map<string, boolean>();
  const excludesProject = (directory: string): boolean => {
    const known = projects.get(directory);
    if (known !== undefined) return known;
    const places = [...new Set([directory, realBeginning(directory)])];
    const list = places
      .map((place) => listFor(join(place, anySession), false))
      .find((one) => one !== undefined);
    const by = list?.directory ?? lostWith(directory, ignored.get(directory));
    if (by === undefined) ignored.delete(directory);
    else ignored.set(directory, by);
    const isLeftOut = list !== undefined || by !== undefined;
    projects.set(directory, isLeftOut);
    return isLeftOut;
  };
  const mayExcludeIn = (directory: string) => configured.length > 0 || listsFor(directory).length > 0;
  return { mayExcludeIn, excludes, excludesProject, ignored };
}

/** The directory of a `.tapeignore` that was lost with a working directory; undefined where the user took it away, or there was none. */
function lostWith(directory: string, by: string | undefined): string | undefined {
  if (by === undefined || existsSync(join(by, ignoreFile))) return undefined;
  return existsSync(directory) && existsSync(by) ? undefined : by;
}

/** A text in one form of Unicode: an accent that was typed as a letter of its own is the same name to a person, and to macOS. Pure. */
function oneForm(text: string): string {
  return text.normalize('NFC');
}

/**
 * A configured pattern that is no path, for each depth. In a `.gitignore`, one with a slash inside counts for the directory of
 * the file alone; a configuration has no such directory. Pure.
 */
function atEachDepth(pattern: string): string {
  return pattern.replace(/^(!?)(?=[^!/#][^/]*\/[^/\s])(?!\*\*\/)/, '$1**/');
}

/** Rules for what is below a directory; those of the configuration, for all paths. */
interface Listed {
  readonly directory?: string;
  readonly rules: Ignore;
}

type Maker = (options: Options) => Ignore;

let maker: Promise<Maker> | undefined;

/** Loads the package once: to import it again takes as long as fifty files that have not changed. */
async function makerOfRules(): Promise<Maker> {
  maker ??= import('ignore').then(({ default: make }) => make);
  return await maker;
}

type MakeRules = (patterns: readonly string[]) => Ignore;

/**
 * The rules of a file; undefined where there is none. One that is there and cannot be read leaves out everything below: what
 * it would have kept private is not known.
 */
function rulesIn(file: string, rulesOf: MakeRules): Ignore | undefined {
  if (!existsSync(file)) return undefined;
  try {
    const open = openFile(file);
    try {
      return rulesOf(
        Buffer.concat([...open.chunks(0)])
          .toString('utf8')
          .split('\n'),
      );
    } finally {
      open.close();
    }
  } catch {
    return rulesOf(['*']);
  }
}

function slashes(path: string): string {
  return sep === '/' ? path : path.replaceAll(sep, '/');
}
