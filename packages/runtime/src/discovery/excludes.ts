import { existsSync } from 'node:fs';
import { dirname, join, parse, relative, sep } from 'node:path';
import type { Ignore } from 'ignore';
import { openFile } from '../lines/index.ts';

/** What is left out, in the patterns of `.gitignore`. */
export interface Excludes {
  /** Whether a folder or file is left out, by its whole path; `isFolder` so that a pattern may end in a slash. */
  excludes(path: string, isFolder: boolean): boolean;
  /** Whether the sessions of a working directory are left out: as if each were a file in it. */
  excludesProject(directory: string): boolean;
}

/** The name of a file with patterns for what lies beside and below it. */
export const ignoreFile = '.tapeignore';

/** A file of a working directory stands for each session of it. */
const anySession = 'session.jsonl';

/**
 * The patterns of a configuration, and those in `.tapeignore` files. A configured pattern that begins with `/` or `~/` is a
 * path; any other one applies at each depth.
 */
export async function makeExcludes(
  patterns: readonly string[],
  { home }: { readonly home: string },
): Promise<Excludes> {
  const { default: make } = await import('ignore');
  const rulesOf: MakeRules = (lines) => make({ allowRelativePaths: true }).add([...lines]);
  const configured = rulesOf(
    patterns.map((pattern) => pattern.replace(/^(!?)~(?=\/|$)/, `$1${slashes(home)}`)),
  );
  const files = new Map<string, Ignore | undefined>();
  const fileIn = (directory: string): Ignore | undefined => {
    if (!files.has(directory)) files.set(directory, rulesIn(join(directory, ignoreFile), rulesOf));
    return files.get(directory);
  };
  const excludes = (path: string, isFolder: boolean): boolean => {
    const end = isFolder ? '/' : '';
    const { root } = parse(path);
    const whole = slashes(relative(root, path));
    if (whole !== '' && configured.ignores(`${whole}${end}`)) return true;
    for (let at = dirname(path); ; at = dirname(at)) {
      if (fileIn(at)?.ignores(`${slashes(relative(at, path))}${end}`) === true) return true;
      if (dirname(at) === at) return false;
    }
  };
  return { excludes, excludesProject: (directory) => excludes(join(directory, anySession), false) };
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
