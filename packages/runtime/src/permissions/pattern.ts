import type { Claim } from './claim.ts';
import { type RealPath, UnknownPath } from './real-path.ts';
import type { Rule } from './rule.ts';

/** Where rules are read: what `~` and `{workspace}` mean in them, how links lead, and whose parent `parent` is. */
export interface Place {
  readonly workspace: string | undefined;
  readonly home: string | undefined;
  readonly real: RealPath;
  /** The session whose rules they are, and its parent. */
  readonly session: string;
  readonly parent: string | undefined;
}

/** Whether a rule is about a claim. */
export function covers(rule: Rule, claim: Claim, place: Place): boolean {
  const { kind, pattern } = rule;
  if (kind === 'any') return true;
  if (kind === 'tool')
    return (claim.kind === 'tool' || claim.kind === 'opaque') && nameGlob(pattern).test(claim.what);
  if (kind !== claim.kind) return false;
  if (kind === 'exec') return coversWords(rule, claim.words ?? []);
  if (kind === 'read' || kind === 'write') return pathGlob(pattern, place)?.test(claim.what) === true;
  if (kind !== 'send') return nameGlob(pattern).test(claim.what);
  const isParent = place.parent !== undefined && claim.what === place.parent;
  const isChild = claim.parent !== undefined && claim.parent === place.session;
  if (pattern === 'parent') return isParent;
  if (pattern === 'children') return isChild;
  if (pattern === 'family') return isParent || isChild;
  return nameGlob(pattern).test(claim.what);
}

/**
 * Compares word by word: a last `*` stands for any further words. What forbids or asks also covers the program by its
 * path: `deny exec(rm *)` covers `/bin/rm x`, and `allow exec(git *)` covers no `./git`.
 */
function coversWords({ pattern, verdict }: Rule, words: readonly string[]): boolean {
  const { globs, isOpen } = wordGlobs(pattern);
  if (isOpen ? words.length < globs.length : words.length !== globs.length) return false;
  return globs.every((glob, i) => {
    const word = words[i] ?? '';
    const name = i === 0 && verdict !== 'allow' ? word.slice(word.lastIndexOf('/') + 1) : word;
    return glob.test(word) || glob.test(name);
  });
}

interface WordGlobs {
  readonly globs: readonly RegExp[];
  /** Further words may follow. */
  readonly isOpen: boolean;
}

const wordGlobs = remembered((pattern: string): WordGlobs => {
  const words: string[] = [];
  let isQuoted = false;
  let word: string | undefined;
  for (const [one] of pattern.matchAll(/\\.|[\s\S]/g)) {
    if (one === '"') {
      isQuoted = !isQuoted;
      word ??= '';
    } else if (/^\s$/.test(one) && !isQuoted) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + (isQuoted && one === '*' ? '\\*' : one);
  }
  if (word !== undefined) words.push(word);
  const isOpen = words.at(-1) === '*';
  return { globs: (isOpen ? words.slice(0, -1) : words).map((text) => glob(text)), isOpen };
});

const nameGlob = remembered((pattern: string): RegExp => glob(pattern));

/** A pattern of names: `*` is any text, and a backslash takes the next character as it is. */
function glob(pattern: string): RegExp {
  return new RegExp(`^${source(pattern, { star: '[^]*' })}$`, 'u');
}

/**
 * The pattern of paths, with the real path of its part without stars; undefined where it names no place. `dir/**` covers
 * the directory and all below it.
 */
function pathGlob(pattern: string, place: Place): RegExp | undefined {
  const { base, rest } = partsOf(pattern);
  if (base === undefined) return pathRegExp(`\0${rest}`);
  const directory = placed(base, place);
  if (directory === undefined) return undefined;
  try {
    return pathRegExp(`${place.real(directory)}\0${rest}`);
  } catch (error) {
    if (error instanceof UnknownPath) return undefined;
    throw error;
  }
}

/** Where a pattern begins. `root` is as it was written: an escaped `~` or `{workspace}` is a name in the workspace. */
interface Base {
  readonly root: string;
  readonly below: string;
}

/** The part of a pattern before the first name with a star, and what follows. */
const partsOf = remembered((pattern: string): { readonly base: Base | undefined; readonly rest: string } => {
  const names = pattern.match(/(?:\\.|[^/\\])+|\//gu) ?? [];
  const isGlob = (name: string) => name.replaceAll(/\\./gu, '').includes('*');
  const first = names.findIndex(isGlob);
  if (names[0] === '**') return { base: undefined, rest: pattern };
  const before = (first === -1 ? names : names.slice(0, first)).join('');
  const [root = ''] = before.match(/^(?:\\?\/|~(?=\/|$)|\{workspace\})/u) ?? [];
  const below = before.slice(root.length).replaceAll(/\\(.)/gu, '$1');
  return { base: { root, below }, rest: first === -1 ? '' : names.slice(first).join('') };
});

function placed({ root, below }: Base, { workspace, home }: Place): string | undefined {
  if (root.endsWith('/')) return `/${below}`;
  if (root === '~') return home === undefined ? undefined : home + below;
  if (workspace === undefined) return undefined;
  return root === '{workspace}' ? workspace + below : `${workspace}/${below}`;
}

/** @param place the real directory, a null character, and the pattern of what lies below */
const pathRegExp = remembered((place: string): RegExp => {
  const [directory = '', rest = ''] = place.split('\0');
  const base = RegExp.escape(directory === '/' ? '' : directory);
  if (rest === '') return new RegExp(`^${base === '' ? '/' : base}$`, 'u');
  const below = source(rest, { star: '[^/]*', stars: true });
  return new RegExp(`^${base}${below}$`, 'u');
});

/** A pattern as the source of a regular expression. With `stars`, `**` stands for any directories. */
function source(pattern: string, { star, stars = false }: { star: string; stars?: boolean }): string {
  if (!stars)
    return pattern.replaceAll(/\\(.)|(\*+)|([^\\*]+)/gsu, (_, escaped, many, plain) =>
      many === undefined ? RegExp.escape(escaped ?? plain) : star,
    );
  return (pattern.match(/(?:\\.|[^/\\])+/gsu) ?? [])
    .map((name) => (name === '**' ? '(?:/[^]*)?' : `/${source(name, { star })}`))
    .join('');
}

/** How many compiled patterns are kept. */
const knownMax = 2_000;

/** A pure function that keeps what it made last. */
function remembered<T>(make: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    if (known.size >= knownMax) known.clear();
    const made = make(text);
    known.set(text, made);
    return made;
  };
}
