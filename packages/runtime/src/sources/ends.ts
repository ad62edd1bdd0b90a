import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { FoundInFile } from '../formats/found-in-file.ts';
import type { LeftTape } from '../import/reconcile-end.ts';
import type { ReadState } from '../lines/index.ts';
import type { Source } from './source.ts';

/** Where a source can be read on when it has grown. */
export interface SourceEnd {
  /** Where that reading begins. */
  readonly from: ReadState;
  readonly session: string;
  readonly key: string;
  readonly name: string;
  readonly state: JsonObject;
  readonly tape: LeftTape;
  /** The working directories that its records before it name. */
  readonly directories: readonly string[];
  /** What was found before it. */
  readonly before: FoundInFile;
  /** The other sessions of the file, by their conversations. */
  readonly others: readonly { readonly conversation: string; readonly id: string }[];
  /** The ids before it, as numbers. */
  readonly ids: Uint32Array;
}

/**
 * Where sources can be read on, each in a file of its own: the table is read whole each time, and this is large. It is no
 * truth: one that is missing, or is of another reading, costs a reading of the whole source.
 */
export class SourceEnds {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The end of a source as its last reading left it. */
  of({ path, read }: Pick<Source, 'path' | 'read'>): SourceEnd | undefined {
    try {
      const value: unknown = JSON.parse(readFileSync(this.#fileOf(path), 'utf8'));
      if (!isObject(value) || value.v !== version || value.path !== path) return undefined;
      if (value.offset !== read.offset || value.tail !== read.digest.tail) return undefined;
      const { v: _, path: __, offset: ___, tail: ____, ids, ...end } = value as unknown as Written;
      const bytes = new Uint8Array(Buffer.from(ids, 'base64'));
      return { ...end, ids: new Uint32Array(bytes.buffer, 0, bytes.length >> 2) };
    } catch {
      return undefined;
    }
  }

  /** Records where a source can be read on. A home that takes no files loses nothing by it. */
  put({ path, read }: Pick<Source, 'path' | 'read'>, end: SourceEnd | undefined): void {
    const file = this.#fileOf(path);
    if (end === undefined) {
      removeIfMay(file);
      return;
    }
    const draft = `${file}.${randomBytes(6).toString('hex')}.part`;
    const ids = Buffer.from(end.ids.buffer, end.ids.byteOffset, end.ids.byteLength).toString('base64');
    const { offset, digest } = read;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      const text = JSON.stringify({
        v: version,
        path,
        offset,
        tail: digest.tail,
        ...end,
        ids,
      } satisfies Written);
      writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
      renameSync(draft, file);
    } catch {
      removeIfMay(draft);
    }
  }

  #fileOf(path: string): string {
    return join(this.#folder, `${createHash('sha256').update(path).digest('hex').slice(0, 32)}.json`);
  }
}

/** Removes a file, where that can be done: one that stays is known to be of another reading. */
function removeIfMay(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // What the home has in the place of the folder is left alone.
  }
}

const version = 2;

interface Written extends Omit<SourceEnd, 'ids'> {
  readonly v: typeof version;
  readonly path: string;
  readonly offset: number;
  readonly tail: string;
  readonly ids: string;
}
