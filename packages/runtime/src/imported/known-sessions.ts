import { crc32 } from 'node:zlib';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { appendLines, linesIn, replaceLines } from '../lines/index.ts';
import { ofStore } from './of-store.ts';
import { type FactsAt, factsOf, type SessionFacts } from './session-facts.ts';

/** A session as it was read. */
interface Known extends FactsAt {
  readonly headHash: string;
}

/**
 * The facts of the sessions of a home. Each is read once, and again when the session has changed; a file keeps them for the
 * next process, which would read all sessions otherwise to find the copies of one. The file is no truth: what it lacks is read
 * from the tapes, and a line counts as long as the hash of its session's head is the same.
 */
export class KnownSessions {
  readonly #store: HomeStore;
  readonly #known = new Map<string, Known>();
  /** Those that the file does not have. */
  readonly #fresh = new Set<string>();
  #file: string | undefined;
  /** What the file had, without what was taken from it. */
  #kept: Map<string, Known> | undefined;
  /** Lines of the file. */
  #lines = 0;

  constructor(store: HomeStore) {
    this.#store = store;
  }

  /** Keeps them in a file, where it is not read yet. */
  keepIn(file: string): void {
    if (this.#file === file) return;
    this.#file = file;
    this.#kept = undefined;
  }

  /** The facts of a session as it is. */
  of(info: SessionInfo): SessionFacts {
    const known = this.#known.get(info.id);
    return known?.headHash === info.headHash ? known.facts : this.#take(info, known).facts;
  }

  /** Writes those that the file does not have. A home that takes no files loses nothing by it. */
  save(): void {
    const fresh = [...this.#fresh];
    this.#fresh.clear();
    if (this.#file === undefined || fresh.length === 0) return;
    const lines = fresh.flatMap((id) => {
      // What an import notes of a session last changes its head, and seldom a fact.
      const info = this.#store.sessions.find(id);
      const facts = info && this.of(info);
      return facts === undefined || facts.lacks === true ? [] : this.#lineOf(id);
    });
    this.#fresh.clear();
    try {
      if (this.#lines > 2 * this.#known.size + 256) this.#shorten(this.#file);
      appendLines(this.#file, lines);
      this.#lines += lines.length;
    } catch {
      // The next process reads them from the tapes.
    }
  }

  #take(info: SessionInfo, before: Known | undefined): Known {
    const kept = before === undefined ? this.#keptOf(info.id) : undefined;
    const isSame = kept?.headHash === info.headHash;
    const known = isSame ? kept : this.#read(info, before);
    this.#known.set(info.id, known);
    if (!isSame) this.#fresh.add(info.id);
    return known;
  }

  #read(info: SessionInfo, before: Known | undefined): Known {
    const { head, headHash, parentId } = info;
    const above = parentId === undefined ? undefined : this.#at(parentId);
    return { head, headHash, facts: factsOf(this.#store, info, { before, above }) };
  }

  /** A session as it was read last, or is. */
  #at(id: string): Known | undefined {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const info = this.#store.sessions.find(id);
    return info && this.#take(info, undefined);
  }

  #keptOf(id: string): Known | undefined {
    if (this.#kept === undefined) {
      this.#kept = new Map();
      this.#lines = 0;
      for (const line of this.#file === undefined ? [] : readLines(this.#file)) {
        this.#lines += 1;
        const row = rowIn(line);
        if (row !== undefined) this.#kept.set(row.id, row);
      }
    }
    const kept = this.#kept.get(id);
    this.#kept.delete(id);
    return kept;
  }

  #lineOf(id: string): readonly string[] {
    const known = this.#known.get(id);
    return known === undefined ? [] : [lineOf({ id, ...known })];
  }

  /** Writes the last line of each session alone. */
  #shorten(file: string): void {
    const rows = new Map<string, string>();
    for (const line of readLines(file)) {
      const row = rowIn(line);
      if (row !== undefined) rows.set(row.id, line);
    }
    replaceLines(file, [...rows.values()]);
    this.#lines = rows.size;
  }
}

/** That of the lines. One of another version is passed over. */
const version = 2;

type Row = Known & { readonly id: string };

/** Pure. */
function lineOf({ id, head, headHash, facts }: Row): string {
  const json = JSON.stringify([version, id, head, headHash, facts]);
  return `${sumOf(json)} ${json}`;
}

/** A line that is damaged, or was cut off, says nothing. Pure. */
function rowIn(line: string): Row | undefined {
  const json = line.slice(9);
  if (line.slice(0, 9) !== `${sumOf(json)} `) return undefined;
  const [v, id, head, headHash, facts] = JSON.parse(json);
  const isRow = v === version && isObject(facts) && Array.isArray(facts.redactions);
  return isRow ? { id, head, headHash, facts: facts as unknown as SessionFacts } : undefined;
}

function sumOf(json: string): string {
  return crc32(json).toString(16).padStart(8, '0');
}

/** A file that cannot be read has nothing. */
function readLines(file: string): readonly string[] {
  try {
    return linesIn(file);
  } catch {
    return [];
  }
}

/** What is known of the sessions of a home. */
export const knownSessionsIn: (store: HomeStore) => KnownSessions = ofStore(
  (store) => new KnownSessions(store),
);
