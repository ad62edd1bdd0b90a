import { randomBytes } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Seq } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';
import { TapeError } from '../errors.ts';

/** How far a pack brings a session. */
export interface KnownSession {
  readonly id: string;
  readonly session: string;
  /** The number of its entries in the pack. */
  readonly entries: number;
  readonly head: Seq;
  readonly hash: string;
}

/** What a home keeps of a pack. */
export interface KnownPack {
  readonly name: string;
  readonly number: number;
  readonly bytes: number;
  /** Of its file. */
  readonly sha256: string;
  readonly sessions: readonly KnownSession[];
  /** The events of the lineage in it. */
  readonly events: readonly string[];
  /**
   * `all`: everything of it was taken in, or came from here. `some`: sessions were left out. `none`: it was only looked
   * at. `bad`: it does not verify, so that nothing counts of it.
   */
  readonly taken: 'all' | 'some' | 'none' | 'bad';
}

const fileName = 'packs.jsonl';
/** Lines that later ones replace are dropped beyond this. */
const staleMax = 1_000;

/**
 * What was seen of the packs of one remote, in a file of the home. All of it follows from the packs, so that the file can
 * be removed; a line that is not whole is as one that is missing.
 */
export class Known {
  readonly #file: string;
  readonly #packs: Map<string, KnownPack>;

  private constructor(file: string, packs: Map<string, KnownPack>) {
    this.#file = file;
    this.#packs = packs;
  }

  /** Reads what a directory of the home keeps of a remote. */
  static at(state: string): Known {
    const file = join(state, fileName);
    const lines = linesIn(file);
    const packs = new Map(lines.map((pack) => [pack.name, pack]));
    const known = new Known(file, packs);
    if (lines.length > packs.size + staleMax) known.#rewrite();
    return known;
  }

  get packs(): Iterable<KnownPack> {
    return this.#packs.values();
  }

  get isEmpty(): boolean {
    return this.#packs.size === 0;
  }

  get(name: string): KnownPack | undefined {
    return this.#packs.get(name);
  }

  add(pack: KnownPack): void {
    this.#packs.set(pack.name, pack);
    // What was cut off before it is a line of its own.
    this.#written(() => appendFileSync(this.#file, `\n${JSON.stringify(pack)}\n`, { mode: 0o600 }));
  }

  #rewrite(): void {
    const draft = `${this.#file}.${randomBytes(6).toString('hex')}.part`;
    this.#written(() => {
      writeFileSync(draft, [...this.#packs.values()].map((pack) => `${JSON.stringify(pack)}\n`).join(''), {
        mode: 0o600,
      });
      renameSync(draft, this.#file);
    });
  }

  #written(write: () => void): void {
    try {
      mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 });
      write();
    } catch (cause) {
      throw new TapeError('TAPE_IO', `cannot write '${this.#file}': ${(cause as Error).message}`, {
        data: { file: this.#file },
        cause,
      });
    }
  }
}

function linesIn(file: string): readonly KnownPack[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    // Everything is looked at again.
    return [];
  }
  return text.split('\n').flatMap((line) => {
    try {
      const pack: unknown = line === '' ? undefined : JSON.parse(line);
      return isPack(pack) ? [pack] : [];
    } catch {
      return [];
    }
  });
}

function isPack(value: unknown): value is KnownPack {
  return (
    isObject(value) &&
    ['name', 'sha256', 'taken'].every((field) => typeof value[field] === 'string') &&
    ['number', 'bytes'].every((field) => Number.isSafeInteger(value[field])) &&
    Array.isArray(value.events) &&
    Array.isArray(value.sessions) &&
    value.sessions.every((one) => isObject(one) && typeof one.id === 'string' && typeof one.hash === 'string')
  );
}
