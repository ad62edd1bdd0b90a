import { type BigIntStats, type Dirent, readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { sep } from 'node:path';
import { type FileFacts, kindOf, reasonOf } from '../lines/index.ts';
import { factsOf } from '../lines/open.ts';
import type { Excludes } from './excludes.ts';

/** A regular file below a folder. */
export interface WalkedFile {
  readonly path: string;
  readonly facts: FileFacts;
}

/** A path, and where it leads. */
interface Place {
  readonly path: string;
  readonly real: string;
}

/** Something that was passed over, with the reason. */
export interface Problem {
  readonly path: string;
  readonly why: string;
}

/** The file that makes a folder a tape home. */
const database = 'tape.db';

/** One search through folders, each of which is entered once, whichever links lead to it. */
export class Walk {
  readonly #excludes: Excludes;
  readonly #entered = new Set<string>();
  readonly #found = new Set<string>();
  readonly #problems: Problem[] = [];
  readonly #known: (path: string) => FileFacts | undefined;
  #excluded = 0;

  /** `known`: what a file was when it was last read. */
  constructor(excludes: Excludes, known: (path: string) => FileFacts | undefined = () => undefined) {
    this.#excludes = excludes;
    this.#known = known;
  }

  get problems(): readonly Problem[] {
    return this.#problems;
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
    const files: WalkedFile[] = [];
    this.#add(files, has, { path, real: realOf(path) });
    return files;
  }

  #add(files: WalkedFile[], has: (path: string) => boolean, { path, real }: Place): void {
    const stat = this.#statOf(path);
    if (stat === undefined) return;
    if (!stat.isDirectory()) {
      const file = has(path) && !this.#isExcluded([path, real], false) ? this.#fileOf(path, stat) : undefined;
      if (file !== undefined) files.push(file);
      return;
    }
    if (this.#isExcluded([path, real], true) || !isFirst(this.#entered, factsOf(stat))) return;
    const [folder, realFolder] = [path, real].map((one) => (one.endsWith(sep) ? one : `${one}${sep}`));
    const mayExclude = [path, real].some((one) => this.#excludes.mayExcludeIn(one));
    const entries = this.#entriesOf(path);
    // A tape home has its own: what was imported lies there already.
    if (entries.some(({ name }) => name === database)) return;
    for (const entry of entries) {
      const inside = `${folder}${entry.name}`;
      const realInside = `${realFolder}${entry.name}`;
      if (entry.isSymbolicLink()) this.#add(files, has, { path: inside, real: realOf(inside) });
      else if (entry.isDirectory()) this.#add(files, has, { path: inside, real: realInside });
      // Only a file with the name of a transcript is looked at.
      else if (has(inside) && !(mayExclude && this.#isExcluded([inside, realInside], false))) {
        const file = this.#lookAt(inside);
        if (file !== undefined) files.push(file);
      }
    }
  }

  #lookAt(path: string): WalkedFile | undefined {
    const known = this.#known(path);
    if (known !== undefined && isAsKnown(path, known))
      return isFirst(this.#found, known) ? { path, facts: known } : undefined;
    const stat = this.#statOf(path);
    return stat && this.#fileOf(path, stat);
  }

  #fileOf(path: string, stat: BigIntStats): WalkedFile | undefined {
    if (!stat.isFile()) {
      this.#problems.push({ path, why: `it is ${kindOf(stat)}` });
      return undefined;
    }
    const facts = factsOf(stat);
    return isFirst(this.#found, facts) ? { path, facts } : undefined;
  }

  #isExcluded(paths: readonly string[], isFolder: boolean): boolean {
    const isExcluded = [...new Set(paths)].some((path) => this.#excludes.excludes(path, isFolder));
    if (isExcluded) this.#excluded += 1;
    return isExcluded;
  }

  #statOf(path: string) {
    try {
      const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
      if (stat === undefined)
        this.#problems.push({ path, why: 'it is gone, or a link to what is not there' });
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

/**
 * Whether a file is what is known of it. Most files are: numbers then do, which cost half of what the exact facts do as texts.
 * The time of a file is compared to a quarter of a microsecond, in which no file is written twice.
 */
function isAsKnown(path: string, { device, inode, size, modified }: FileFacts): boolean {
  const stat = quickStat(path);
  return (
    stat?.isFile() === true &&
    stat.size === size &&
    Number.isSafeInteger(stat.ino) &&
    stat.ino === Number(inode) &&
    stat.dev === Number(device) &&
    stat.mtimeMs === Number(modified.slice(0, -9)) * 1e3 + Number(modified.slice(-9)) / 1e6
  );
}

function quickStat(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Where a path leads; the path itself where it leads nowhere. */
function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function isFirst(seen: Set<string>, { device, inode }: FileFacts): boolean {
  const before = seen.size;
  return seen.add(`${device}:${inode}`).size > before;
}
