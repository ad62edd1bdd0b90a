import type { Claim } from './claim.ts';
import { type RealPath, UnknownPath } from './real-path.ts';
import type { Rule } from './rule.ts';

/** Where rules are read: what `~` and `{workspace}` mean in them, how links lead, and whose parent `parent` is. */
export interface Place {
  readonly workspace: string | undefined;
  readonly home: string | undefined;
  readonly real: RealPath;
  /** Whether the system takes names in another case as the same, as those of macOS and Windows do. */
  readonly ignoresCase?: boolean;
  /** The session whose rules they are, and its parent. */
  readonly session: string;
  readonly parent: string | undefined;
}

/** Whether a rule is about a claim. */
export function covers(rule: Rule, claim: Claim, place: Place): boolean {
  const { kind, pattern } = rule;
  if (kind === 'any') return true;
  if (kind === 'tool')
    return (claim.kind === 'tool' || claim.kind === 'opaque') && fits(globOf(pattern), claim.what);
  if (kind !== claim.kind) return false;
  if (kind === 'exec') return coversWords(rule, claim.words ?? [], place);
  if (kind === 'read' || kind === 'write') return coversPath(rule, claim.what, place);
  if (kind !== 'send') return fits(globOf(pattern), claim.what);
  const isParent = place.parent !== undefined && claim.what === place.parent;
  const isChild = claim.parent !== undefined && claim.parent === place.session;
  if (pattern === 'parent') return isParent;
  if (pattern === 'children') return isChild;
  if (pattern === 'family') return isParent || isChild;
  return fits(globOf(pattern), claim.what);
}

/**
 * As a system compares names that ignores case: what forbids or asks covers a name in any case there, and what allows only
 * the name itself.
 */
function caseOf({ verdict }: Rule, { ignoresCase }: Place): (text: string) => string {
  return ignoresCase === true && verdict !== 'allow'
    ? (text) => text.normalize('NFC').toLowerCase()
    : (text) => text;
}

/**
 * Compares word by word: a last `*` stands for any further words. What forbids or asks also covers the program by its
 * path: `deny exec(rm *)` covers `/bin/rm x`, and `allow exec(git *)` covers no `./git`.
 */
function coversWords(rule: Rule, words: readonly string[], place: Place): boolean {
  const inCase = caseOf(rule, place);
  const { globs, isOpen } = wordGlobs(inCase(rule.pattern));
  if (isOpen ? words.length < globs.length : words.length !== globs.length) return false;
  return globs.every((glob, i) => {
    const word = inCase(words[i] ?? '');
    const name = i === 0 && rule.verdict !== 'allow' ? word.slice(word.lastIndexOf('/') + 1) : word;
    return fits(glob, word) || fits(glob, name);
  });
}

interface WordGlobs {
  readonly globs: readonly Glob[];
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
  return { globs: (isOpen ? words.slice(0, -1) : words).map(globIn), isOpen };
});

/** A pattern of names: what stands between its stars, each of which is any text. */
type Glob = readonly string[];

const globOf = remembered(globIn);

/** A backslash takes the next character as it is. */
function globIn(pattern: string): Glob {
  const between = [''];
  for (const [one, escaped] of pattern.matchAll(/\\([\s\S])|\*+|[^\\*]+/gu)) {
    if (one.startsWith('*')) between.push('');
    else between.push(`${between.pop() ?? ''}${escaped ?? one}`);
  }
  return between;
}

/** Whether a text fits: in one pass, whatever the text is, because the first place of each piece is the best one. */
function fits(glob: Glob, text: string): boolean {
  const [first = '', ...more] = glob;
  const last = more.pop();
  if (last === undefined) return text === first;
  const end = text.length - last.length;
  if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (const piece of more) {
    const found = text.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return at <= end;
}

/** Compares with the real path of the part without stars; a pattern that names no place covers nothing. */
function coversPath(rule: Rule, path: string, place: Place): boolean {
  const { base, rest } = partsOf(rule.pattern);
  const inCase = caseOf(rule, place);
  const directory = base === undefined ? '/' : realBase(base, place);
  if (directory === undefined) return false;
  const names = namesIn(inCase(path));
  const above = namesIn(inCase(directory));
  if (names.length < above.length || above.some((name, i) => names[i] !== name)) return false;
  return fitNames(nameGlobs(inCase(rest)), names.slice(above.length));
}

function realBase(base: Base, place: Place): string | undefined {
  const directory = placed(base, place);
  if (directory === undefined) return undefined;
  try {
    return place.real(directory);
  } catch (error) {
    if (error instanceof UnknownPath) return undefined;
    throw error;
  }
}

const namesIn = remembered((path: string): readonly string[] =>
  path.split('/').filter((name) => name !== ''),
);

/** The names of a pattern; `**` is any directories, also none. */
const nameGlobs = remembered((rest: string): readonly (Glob | '**')[] =>
  (rest.match(/(?:\\.|[^/\\])+/gsu) ?? []).map((name) => (name === '**' ? name : globIn(name))),
);

/** Whether names fit. Where one does not, only the last `**` can take one more: each name is compared once with each glob. */
function fitNames(globs: readonly (Glob | '**')[], names: readonly string[]): boolean {
  let [glob, name] = [0, 0];
  let again: { readonly glob: number; readonly name: number } | undefined;
  while (name < names.length) {
    const one = globs[glob];
    if (one === '**') {
      glob += 1;
      again = { glob, name };
    } else if (one !== undefined && fits(one, names[name] ?? '')) {
      glob += 1;
      name += 1;
    } else if (again === undefined) return false;
    else {
      again = { glob: again.glob, name: again.name + 1 };
      ({ glob, name } = again);
    }
  }
  return globs.slice(glob).every((one) => one === '**');
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
