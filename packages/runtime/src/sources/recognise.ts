import { ImportError } from '../lines/errors.ts';
import {
  beginning,
  blockStart,
  type Compression,
  ContentDigest,
  commonBytes,
  compressionIn,
  contentOf,
  type Digest,
  type FileFacts,
  factsAt,
  type OpenFile,
  openFile,
  type ReadState,
  stateOf,
} from '../lines/index.ts';
import type { Source } from './source.ts';

/** What a file is to what was read before. */
export type Seen =
  /** Nothing of it was read. */
  | { readonly as: 'new' }
  /** It holds what was read, and nothing else: it is the same file. */
  | { readonly as: 'unchanged'; readonly source: Source }
  /** It holds what was read, and perhaps more. `moved`, `compressed` and `copied`: that was read in another file. */
  | { readonly as: 'grown' | 'moved' | 'compressed' | 'copied'; readonly source: Source }
  /** What was read under its path is not there any more as it was, from some place on. */
  | { readonly as: 'rewritten'; readonly source: Source; readonly common: number }
  /** Another file of the same session, an older copy perhaps: it lacks a part of what was read in that. */
  | { readonly as: 'version'; readonly source: Source; readonly common: number };

/**
 * Whether a file needs no look inside: it has the place, the size and the time that it had. Pure, on one `stat`.
 */
export function isUnchanged(source: Source, facts: FileFacts): boolean {
  return isSameFile(source, facts) && source.size === facts.size && source.modified === facts.modified;
}

/** Pure. */
function isSameFile(one: FileFacts, other: FileFacts): boolean {
  return one.device === other.device && one.inode === other.inode;
}

/** How to recognise a file. */
export interface Asked {
  /** The source that has its path. */
  readonly here: Source | undefined;
  /** Sources of the same session of the same tool, under other paths. */
  readonly elsewhere: readonly Source[];
}

/**
 * Compares a file with what was read before. A file that only grew is read in its last block, any other one as far as the
 * earlier reading went.
 * @throws IMPORT_CANNOT_READ, IMPORT_TOO_LARGE
 */
export async function recognise(path: string, { here, elsewhere }: Asked): Promise<Seen> {
  const file = openFile(path);
  try {
    if (here !== undefined && isUnchanged(here, file.facts)) return { as: 'unchanged', source: here };
    const compression = compressionIn(file);
    const isAhead = here !== undefined && here.isBehind !== true;
    if (isAhead && (await isGrown(file, here, compression))) return { as: 'grown', source: here };
    return await among(file, compression, [...(here === undefined ? [] : [here]), ...elsewhere]);
  } finally {
    file.close();
  }
}

async function isGrown(file: OpenFile, here: Source, compression: Compression | undefined): Promise<boolean> {
  const mayBe =
    isSameFile(here, file.facts) &&
    compression === undefined &&
    here.compression === undefined &&
    file.facts.size > here.size;
  return mayBe && (await holdsTail(file, here.read.digest));
}

/**
 * The source all of which a file has, one that was behind no other one first, since it may have caught up with that; else the
 * one that it has most in common with.
 */
async function among(
  file: OpenFile,
  compression: Compression | undefined,
  sources: readonly Source[],
): Promise<Seen> {
  let nearest: { readonly source: Source; readonly common: number } | undefined;
  const isBehind = (source: Source) => source.isBehind === true;
  for (const source of [...sources.filter((one) => !isBehind(one)), ...sources.filter(isBehind)]) {
    const { digest } = source.read;
    const common = await commonWith(file, digest);
    if (common === digest.size) return { as: asOf(file, source, compression), source };
    if (nearest === undefined || common > nearest.common) nearest = { source, common };
  }
  if (nearest === undefined) return { as: 'new' };
  return { as: nearest.source.path === file.path ? 'rewritten' : 'version', ...nearest };
}

function asOf(
  { path, facts }: OpenFile,
  source: Source,
  compression: Compression | undefined,
): 'grown' | 'moved' | 'compressed' | 'copied' {
  if (compression !== source.compression) return 'compressed';
  if (path === source.path) return 'grown';
  const there = factsAt(source.path);
  // A link to the same file is a second name, not a second file.
  return there === undefined || isSameFile(there, facts) ? 'moved' : 'copied';
}

/** Whether the last block of what was read is still there. */
async function holdsTail(file: OpenFile, known: Digest): Promise<boolean> {
  const from = blockStart(known.size);
  const now = await digested(file, new ContentDigest(known), { from, to: known.size });
  return now.size === known.size && now.tail === known.tail;
}

/** The bytes at its beginning that a file has in common with what was read, in whole blocks. */
async function commonWith(file: OpenFile, known: Digest): Promise<number> {
  const begun = new ContentDigest(beginning.digest);
  return commonBytes(known, await digested(file, begun, { from: 0, to: known.size }));
}

/**
 * The source all of which a file begins with, wherever that was read. Reads as much of the file as the largest one needs.
 * @throws IMPORT_CANNOT_READ, IMPORT_TOO_LARGE
 */
export async function beginningAs(path: string, sources: readonly Source[]): Promise<Source | undefined> {
  const left = sources.filter(({ read }) => read.digest.size > 0);
  left.sort((a, b) => b.read.digest.size - a.read.digest.size);
  if (left.length === 0) return undefined;
  const file = openFile(path);
  try {
    const digest = new ContentDigest(beginning.digest);
    let at = 0;
    for await (const chunk of contentOf(file)) {
      let from = 0;
      for (let next = left.at(-1); next !== undefined; next = left.at(-1)) {
        const known = next.read.digest;
        if (known.size > at + chunk.length) break;
        digest.pushAll(chunk.subarray(from, known.size - at));
        from = known.size - at;
        if (commonBytes(known, digest.value()) === known.size) return next;
        left.pop();
      }
      if (left.length === 0) return undefined;
      digest.pushAll(chunk.subarray(from));
      at += chunk.length;
    }
    return undefined;
  } finally {
    file.close();
  }
}

/** A source of which another file holds just what was read, or the beginning of that. */
export interface Held {
  /** A `version` has the beginning alone. */
  readonly as: 'unchanged' | 'moved' | 'compressed' | 'copied' | 'version';
  readonly source: Source;
  /** That of the file. */
  readonly compression: Compression | undefined;
  /** How far a reading of the file comes. */
  readonly read: ReadState;
}

/**
 * Finds the source of which a file holds exactly what was read, whatever the time and the path of the file are. Undefined where
 * no source is like that, and for a file that cannot be read. A file whose length no source has is not read.
 */
export async function heldBy(path: string, sources: readonly Source[]): Promise<Held | undefined> {
  if (sources.length === 0) return undefined;
  try {
    const file = openFile(path);
    try {
      const compression = compressionIn(file);
      // What follows the last newline is not in the digest, and a compressed file has none.
      const isAsLong = (source: Source) =>
        source.size === file.facts.size || source.compression !== compression;
      const left = sources.filter((source) => source.read.digest.size > 0 && isAsLong(source));
      if (left.length === 0) return undefined;
      const { digest } = await stateOf(file);
      const source = left.find(
        ({ read }) => read.digest.size === digest.size && commonBytes(read.digest, digest) === digest.size,
      );
      if (source === undefined) return undefined;
      const as = asOf(file, source, compression);
      return { as: as === 'grown' ? 'unchanged' : as, source, compression, read: source.read };
    } finally {
      file.close();
    }
  } catch (error) {
    if (!(error instanceof ImportError)) throw error;
    return undefined;
  }
}

/**
 * Finds the source whose file begins with all that a file holds, as an older copy of it does, and is as it was read. Undefined
 * where no source is like that, and for a file that cannot be read. Reads as much of the source as the file has, and nothing
 * where each source is shorter, as that of a file which has grown.
 */
export async function olderThan(path: string, sources: readonly Source[]): Promise<Held | undefined> {
  const there = sources.filter((source) => {
    const facts = factsAt(source.path);
    return facts !== undefined && isUnchanged(source, facts);
  });
  if (there.length === 0) return undefined;
  try {
    const file = openFile(path);
    try {
      const compression = compressionIn(file);
      const isPlain = (source: Source) => source.compression === undefined && compression === undefined;
      const left = there.filter((source) => !isPlain(source) || source.size >= file.facts.size);
      if (left.length === 0) return undefined;
      const all = new ContentDigest(beginning.digest);
      for await (const chunk of contentOf(file)) all.pushAll(chunk);
      const digest = all.value();
      for (const source of left) {
        if (digest.size === 0 || !(await beginsWith(source, digest))) continue;
        // What has no newline at its end, as a file of one object, is in no digest that is kept.
        const as = source.compression === undefined && source.size === digest.size ? 'copied' : 'version';
        return { as, source, compression, read: await stateOf(file) };
      }
      return undefined;
    } finally {
      file.close();
    }
  } catch (error) {
    if (!(error instanceof ImportError)) throw error;
    return undefined;
  }
}

/** Whether the file of a source is as it was read, and begins with some content. */
async function beginsWith(source: Source, digest: Digest): Promise<boolean> {
  const isShorter = source.compression === undefined && source.size < digest.size;
  if (isShorter || factsAt(source.path) === undefined) return false;
  const file = openFile(source.path);
  try {
    return isUnchanged(source, file.facts) && (await commonWith(file, digest)) === digest.size;
  } finally {
    file.close();
  }
}

async function digested(
  file: OpenFile,
  digest: ContentDigest,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<Digest> {
  let at = from;
  for await (const chunk of contentOf(file, { from })) {
    digest.pushAll(chunk.subarray(0, to - at));
    at += chunk.length;
    if (at >= to) break;
  }
  return digest.value();
}
