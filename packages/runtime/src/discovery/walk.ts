import { type BigIntStats, type Dirent, readdirSync, type Stats, statSync } from 'node:fs';
import { dirname, sep } from 'node:path';
import type { ImportError } from '../lines/errors.ts';
import { type FileFacts, kindOf, reasonOf } from '../lines/index.ts';
import { factsOf } from '../lines/open.ts';
import type { Source } from '../sources/index.ts';
import type { Excludes } from './excludes.ts';
import { realOf } from './real.ts';

/** A regular file below a folder. */
export interface WalkedFile {
  readonly path: string;
  readonly facts: FileFacts;
  /** What is known of it, where it is surely as that says. */
  readonly known?: Source;
}

/** A path, and where it leads. */
interface Place {
  readonly path: string;
  readonly real: string;
}

/** What is searched for in a folder. */
interface Sought {
  /** Whether a file may be one of those, by its path. */
  readonly has: (path: string) => boolean;
  /** Where the folder is: what is not at or below it is not looked at. */
  readonly within: string;
}

/** Something that was passed over, with the reason. */
export interface Problem {
  readonly path: string;
  readonly why: string;
  /** Whether it is a link out of the folder that is searched, which is followed where it is named itself. */
  readonly leadsOut?: true;
  /** What a format or the reading threw. */
  readonly error?: ImportError;
}

/** The same with what a link that leads out leads to: a folder that is searched later may have it. */
interface Passed extends Problem {
  readonly target?: BigIntStats;
}

/** The file that makes a folder a tape home. */
const database = 'tape.db';

/**
 * One search through folders, each of which is entered once, whichever links lead to it. What is named may be a link. In it, a
 * link that leads out is not followed: who may write into a folder could bring in any file of the user.
 */
export class Walk {
  readonly #excludes: Excludes;
  readonly #entered = new Met();
  readonly #found = new Met();
  readonly #problems: Passed[] = [];
  readonly #known: (path: string) => Source | undefined;
  #excluded = 0;

  constructor(excludes: Excludes, known: (path: string) => Source | undefined = () => undefined) {
    this.#excludes = excludes;
    this.#known = known;
  }

  get problems(): readonly Problem[] {
    const isLeft = ({ target }: Passed) => target === undefined || !this.#hasMet(target);
    return this.#problems.filter(isLeft).map(({ target: _, ...problem }) => problem);
  }

  /** How many files and folders were left out by a pattern. */
  get excluded(): number {
    return this.#excluded;
  }

  /**
   * The regular files at or below a path for which `has` says so, sorted. Those met before are not given again. What a
   * pattern leaves out where the path leads is left out behind a link, too.
   */
  files(path: string, has: (path: string) => boolean): readonly WalkedFile[] {
    const real = realOf(path);
    return this.#filesAt({ path, real }, { has, within: real });
  }

  /** The same of a path that the user did not name: it must not lead out of its folder. */
  filesBeside(path: string, has: (path: string) => boolean): readonly WalkedFile[] {
    return this.#filesAt({ path, real: realOf(path) }, { has, within: realOf(dirname(path)) });
  }

  #filesAt(place: Place, sought: Sought): readonly WalkedFile[] {
    const files: WalkedFile[] = [];
    this.#add(files, sought, place);
    return files;
  }

  #add(files: WalkedFile[], sought: Sought, { path, real }: Place): void {
    const { has } = sought;
    const stat = this.#statOf(path);
    if (stat === undefined || this.#leadsOut({ path, real }, sought, stat)) return;
    if (!stat.isDirectory()) {
      const file = has(path) && !this.#isExcluded([path, real], false) ? this.#fileOf(path, stat) : undefined;
      if (file !== undefined) files.push(file);
      return;
    }
    if (this.#isExcluded([path, real], true) || !this.#entered.add(factsOf(stat))) return;
    const folder = withSep(path);
    const realOfEntry = (name: string) => `${withSep(real)}${name}`;
    const mayExclude = [path, real].some((one) => this.#excludes.mayExcludeIn(one));
    const entries = this.#entriesOf(path);
    // A tape home has its own: what was imported lies there already.
    if (entries.some(({ name }) => name === database)) return;
    for (const entry of entries) {
      const inside = `${folder}${entry.name}`;
      if (entry.isSymbolicLink()) this.#add(files, sought, { path: inside, real: realOf(inside) });
      else if (entry.isDirectory()) this.#add(files, sought, { path: inside, real: realOfEntry(entry.name) });
      // Only a file with the name of a transcript is looked at.
      else if (has(inside) && !(mayExclude && this.#isExcluded([inside, realOfEntry(entry.name)], false))) {
        const file = this.#lookAt(inside);
        if (file !== undefined) files.push(file);
      }
    }
  }

  /** Whether a path leads out of the folder that is searched. */
  #leadsOut({ path, real }: Place, { has, within }: Sought, stat: BigIntStats): boolean {
    if (real === within || real.startsWith(withSep(within))) return false;
    if (stat.isDirectory() || has(path)) {
      const why = 'it is a link that leads out of its folder';
      this.#problems.push({ path, why, leadsOut: true, target: stat });
    }
    return true;
  }

  #hasMet(target: BigIntStats): boolean {
    return (target.isDirectory() ? this.#entered : this.#found).has(factsOf(target));
  }

  #lookAt(path: string): WalkedFile | undefined {
    const known = this.#known(path);
    // With the text by which it is known, it is looked up faster than with an equal one.
    if (known !== undefined && isAsKnown(known))
      return this.#found.add(known) ? { path: known.path, facts: known, known } : undefined;
    const stat = this.#statOf(path);
    return stat && this.#fileOf(path, stat);
  }

  #fileOf(path: string, stat: BigIntStats): WalkedFile | undefined {
    if (!stat.isFile()) {
      this.#problems.push({ path, why: `it is ${kindOf(stat)}` });
      return undefined;
    }
    const facts = factsOf(stat);
    return this.#found.add(facts) ? { path, facts } : undefined;
  }

  #isExcluded(paths: readonly string[], isFolder: boolean): boolean {
    const isExcluded = [...new Set(paths)].some((path) => this.#excludes.excludes(path, isFolder));
    if (isExcluded) this.#excluded += 1;
    return isExcluded;
  }

  #statOf(path: string) {
    try {
      const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
      if (stat === undefined) this.#problems.push({ path, why: absenceOf(path) });
      return stat;
    } catch (cause) {
      this.#problems.push({ path, why: reasonOf(cause) });
      return undefined;
    }
  }

  #entriesOf(path: string): readonly Dirent[] {
    try {
      const entries = readdirSync(path, { withFileTypes: true });
      return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch (cause) {
      this.#problems.push({ path, why: reasonOf(cause) });
      return [];
    }
  }
}

/** Whether a file is surely what is known of it. Most are: numbers then do, where the exact facts take half as long again. */
function isAsKnown({ path, device, inode, size, modified }: Source): boolean {
  const stat = quickStat(path);
  return (
    stat?.isFile() === true &&
    stat.size === size &&
    stat.mtimeMs === modified &&
    // A number that has lost digits is no text.
    stat.ino === inode &&
    stat.dev === device
  );
}

function quickStat(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Why nothing is at a path that was listed. Bytes of a name that are no text are lost to it, and with them the way to the file. */
function absenceOf(path: string): string {
  return path.includes('\ufffd')
    ? 'its path is not UTF-8: rename what has such a name'
    : 'it is gone, or a link to what is not there';
}

/** A path as that of what is in it begins. */
function withSep(path: string): string {
  return path.endsWith(sep) ? path : `${path}${sep}`;
}

/** What was met, by its inode on its device: a text of both would be made for each file. */
class Met {
  readonly #devices = new Map<number | string, Set<number | string>>();

  has({ device, inode }: FileFacts): boolean {
    return this.#devices.get(device)?.has(inode) === true;
  }

  /** Adds something, and says whether it was not met before. */
  add({ device, inode }: FileFacts): boolean {
    const inodes = this.#devices.get(device);
    if (inodes === undefined) {
      this.#devices.set(device, new Set([inode]));
      return true;
    }
    const before = inodes.size;
    return inodes.add(inode).size > before;
  }
}
