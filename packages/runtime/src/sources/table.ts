import type { HomeStore } from '@tapedeck/tape';
import { ImportError } from '../lines/errors.ts';
import { appendLines, beginning, isGone, reasonOf, replaceLines } from '../lines/index.ts';
import { SourceEnds } from './ends.ts';
import { asForgotten, conversationOf, forgottenIn, type Kept, keptIn, noteForgotten } from './kept.ts';
import { rowOf, version } from './row.ts';
import type { Source } from './source.ts';
import { isThere, type WrittenHead } from './written-head.ts';

/** The sources that a home knows, in a file beside its tapes. */
export class SourceTable {
  readonly #file: string;
  #byPath: Map<string, Source>;
  /** The paths of each session, the last one at the end. Most openings of a table find nothing new, and need none. */
  #bySession: Map<string, Set<string>> | undefined;
  /** Since when conversations are not to be taken. */
  readonly #forgotten: Map<string, number>;
  /** Lines of the file, those that a later one replaced among them. */
  #lines: number;
  #searched: number | undefined;
  #ignored: ReadonlyMap<string, string>;
  /** Whether the file has more of a conversation that is not to be taken than that. */
  #isLate: boolean;
  /** The newest of those that lines name. */
  #head: WrittenHead | undefined;
  /** What stays of what was dropped; undefined where the file says no more than the table. */
  #dropped: readonly Source[] | undefined;

  private constructor(file: string, { byPath, forgotten, lines, searched, ignored, isLate, head }: Kept) {
    this.#file = file;
    this.#byPath = byPath;
    this.#forgotten = forgotten;
    this.#lines = lines;
    this.#searched = searched;
    this.#ignored = ignored;
    this.#isLate = isLate;
    this.#head = head;
  }

  /**
   * Reads a table; one that is not there is empty. A line that cannot be read, as a killed process leaves it, is passed over.
   * @throws IMPORT_CANNOT_READ
   */
  static open(file: string): SourceTable {
    return new SourceTable(file, keptIn(file));
  }

  /** Where its sources can be read on, each in a file of a folder beside the table. */
  get ends(): SourceEnds {
    return new SourceEnds(`${this.#file}.ends`);
  }

  /** Where what was read of the sessions is kept. */
  get sessionsFile(): string {
    return `${this.#file}.sessions`;
  }

  get all(): readonly Source[] {
    return [...this.#byPath.values()];
  }

  /** When an import looked for transcripts last, or read one; undefined before the first one. */
  get lastImport(): number | undefined {
    const times = this.all.map(({ at }) => at).filter((at) => at > 0);
    return this.#searched === undefined && times.length === 0
      ? undefined
      : times.reduce((last, at) => Math.max(last, at), this.#searched ?? 0);
  }

  /**
   * Records that an import has looked for transcripts, whether there was something new or not.
   * @throws IMPORT_CANNOT_WRITE
   */
  searched(at: number): void {
    this.#append([{ v: version, searched: at }]);
    this.#searched = at;
  }

  /** The working directories whose sessions a `.tapeignore` leaves out, each with the directory of that. */
  get ignored(): ReadonlyMap<string, string> {
    return this.#ignored;
  }

  /**
   * Records which working directories a `.tapeignore` leaves out.
   * @throws IMPORT_CANNOT_WRITE
   */
  noteIgnored(now: ReadonlyMap<string, string>): void {
    const [before, after] = [this.#ignored, new Map(now)];
    const added = [...after].filter(([directory, by]) => before.get(directory) !== by);
    const removed = [...before.keys()].filter((directory) => !after.has(directory));
    this.#append([...added.map(ignoredRow), ...removed.map((ignored) => ({ v: version, ignored }))]);
    this.#ignored = after;
  }

  at(path: string): Source | undefined {
    return this.#byPath.get(path);
  }

  /** The sources of a session under other paths, the last one first. */
  of({ tool, session, path }: Pick<Source, 'tool' | 'session' | 'path'>): readonly Source[] {
    if (this.#bySession === undefined) {
      this.#bySession = new Map();
      for (const source of this.#byPath.values()) index(source, this.#bySession);
    }
    const paths = this.#bySession.get(`${tool} ${session}`) ?? [];
    // A path may have another session by now.
    const isOther = (one: Source) => one.tool === tool && one.session === session && one.path !== path;
    return [...paths]
      .flatMap((one) => this.#byPath.get(one) ?? [])
      .filter(isOther)
      .reverse();
  }

  /**
   * Records what was read of a file, once the tape has it: the other way round, a process that is killed in between would
   * lose it.
   * @param head the newest entry of the home since then
   * @throws IMPORT_CANNOT_WRITE
   */
  put(sources: readonly Source[], head?: WrittenHead): void {
    for (const source of sources) noteForgotten(source, this.#forgotten);
    const said = sources.map((source) => asForgotten(source, this.#forgotten));
    const isKnown = head === undefined || head.hash === this.#head?.hash;
    this.#append([...said.map(rowOf), ...(isKnown ? [] : [headRow(head)])]);
    this.#head = head ?? this.#head;
    for (const source of said) {
      this.#set(source);
      this.#dropEnd(source);
    }
  }

  /**
   * Remembers sources that are not to be taken, and keeps no earlier line of them.
   * @throws IMPORT_CANNOT_WRITE
   */
  forget(sources: readonly Source[]): void {
    this.put(sources);
    this.#shorten();
  }

  /**
   * Reads which sources other processes have forgotten since the table was read.
   * @throws IMPORT_CANNOT_READ
   */
  readForgotten(): void {
    for (const source of keptIn(this.#file).byPath.values()) {
      if (source.forgottenAt === undefined) continue;
      noteForgotten(source, this.#forgotten);
      this.#set(source);
    }
  }

  /**
   * Drops what was read of files if the tapes lack what they had then, as where an older copy of the database is in its place:
   * the files are read again. What was forgotten stays so, and what session was in which file that is gone. The next line that is
   * written says it. Returns whether it dropped.
   * @param store undefined where the home has no tapes
   */
  dropUnlessIn(store: HomeStore | undefined): boolean {
    if (this.#head === undefined || (store !== undefined && isThere(store, this.#head))) return false;
    const isLost = ({ path, forgottenAt }: Source) => forgottenAt === undefined && isGone(path);
    this.#dropped = this.all.filter(isLost).map(asUnread);
    this.#byPath = forgottenIn(this.#byPath);
    for (const source of this.#dropped) this.#byPath.set(source.path, source);
    this.#bySession = undefined;
    this.#head = undefined;
    return true;
  }

  /** Takes back a path whose file has moved to another one, unless it is known to be forgotten. */
  remove(path: string): void {
    const source = this.#byPath.get(path);
    if (source === undefined || source.forgottenAt !== undefined) return;
    this.#append([{ v: version, removed: path }]);
    this.#byPath.delete(path);
  }

  /** Whether a conversation is not to be taken. */
  isForgotten({ tool, main }: Pick<Source, 'tool' | 'main'>): boolean {
    return this.#forgotten.has(conversationOf({ tool, main }));
  }

  /** The main files of conversations that are not to be taken. */
  get forgotten(): readonly Source[] {
    if (this.#forgotten.size === 0) return [];
    return this.all.filter(({ role, forgottenAt }) => role === 'main' && forgottenAt !== undefined);
  }

  /** The sources whose files are not there, without those that are recorded as gone. */
  missing(isThere: (path: string) => boolean): readonly Source[] {
    return this.all.filter(({ path, goneAt }) => goneAt === undefined && !isThere(path));
  }

  #set(source: Source): void {
    // Anew at the end: what was read last is looked at first.
    this.#byPath.delete(source.path);
    this.#byPath.set(source.path, source);
    if (this.#bySession !== undefined) index(source, this.#bySession);
  }

  #append(values: readonly object[]): void {
    if (values.length === 0) return;
    try {
      if (this.#isLate || this.#lines > 2 * this.#byPath.size + 256) this.#shorten();
      const dropped = this.#dropped && [{ v: version, dropped: true }, ...this.#dropped.map(rowOf)];
      const all = [...(dropped ?? []), ...values];
      appendLines(
        this.#file,
        all.map((value) => JSON.stringify(value)),
      );
      this.#dropped = undefined;
    } catch (cause) {
      throw new ImportError('IMPORT_CANNOT_WRITE', `cannot write '${this.#file}': ${reasonOf(cause)}`, {
        data: { file: this.#file },
        cause,
      });
    }
    this.#lines += values.length;
  }

  /** Writes the last line of each path alone. Lines that another process adds at this moment are read from its files again. */
  #shorten(): void {
    const { byPath, searched, ignored, head } = keptIn(this.#file);
    const found = [
      ...(head === undefined ? [] : [headRow(head)]),
      ...(searched === undefined ? [] : [{ v: version, searched }]),
      ...[...ignored].map(ignoredRow),
    ];
    replaceLines(
      this.#file,
      [...found, ...[...byPath.values()].map(rowOf)].map((line) => JSON.stringify(line)),
    );
    this.#lines = byPath.size;
    if (this.#isLate) for (const source of byPath.values()) this.#dropEnd(source);
    this.#isLate = false;
  }

  /** Keeps nothing of where a source that is not to be taken can be read on. */
  #dropEnd(source: Source): void {
    if (source.forgottenAt !== undefined) this.ends.put(source, undefined);
  }
}

/** A source of which nothing was read. Pure. */
function asUnread({ goneAt: _, isBehind: __, lacks: ___, ...source }: Source): Source {
  return { ...source, read: beginning };
}

function ignoredRow([ignored, by]: readonly [directory: string, by: string]): object {
  return { v: version, ignored, by };
}

function headRow(head: WrittenHead): object {
  return { v: version, head };
}

function index({ path, tool, session }: Source, bySession: Map<string, Set<string>>): void {
  const id = `${tool} ${session}`;
  const paths = bySession.get(id) ?? new Set();
  paths.delete(path);
  bySession.set(id, paths.add(path));
}
