import { randomBytes } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable, type Transform } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { TapeError } from '../errors.ts';
import { badBundle, bundleBytesMax, bundleFormat, ratioFrom, ratioMax } from './bundle.ts';

/** A bundle that can be read at any place: its own file, or what it was unpacked to. */
export interface Quarantine {
  readonly fd: number;
  /** What the user calls it. */
  readonly name: string;
  /** In bytes. */
  readonly size: number;
  close(): void;
}

/** Bytes of a bundle: the path of its file, or what a pipe delivers, and what to call that. */
export type BundleSource =
  | string
  | { readonly name: string; readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array> };

const chunkBytes = 256 * 1024;
/** The least bytes by which a bundle is recognised: its first line begins so. */
const begins = `{"bundle":"${bundleFormat}"`;

/**
 * Takes a bundle where its bytes stay the same and can be read twice. A plain file is read in its place. What is
 * compressed, or comes from a pipe, goes to a file without a name, which no one else opens and no crash leaves behind.
 * @throws TAPE_BAD_BUNDLE, TAPE_IO
 */
export async function quarantine(source: BundleSource, beside: string): Promise<Quarantine> {
  if (typeof source !== 'string') return await spool(source.name, source.chunks, beside);
  if (isPartOf(source, beside)) throw badBundle(source, null, 'it is the database itself');
  const fd = openFile(source);
  try {
    const head = headOf(fd);
    const stat = fstatSync(fd);
    if (stat.isFile() && packing(head) === undefined)
      return { fd, name: source, size: stat.size, close: () => closeSync(fd) };
    const spooled = await spool(source, chunksOf(fd), beside);
    closeSync(fd);
    return spooled;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/**
 * Whether bytes begin as a bundle does, also a compressed one: reads its first line alone.
 * @param head the first bytes, at least some thousands, or all
 */
export async function isBundle(head: Uint8Array): Promise<boolean> {
  const unpack = packing(head);
  if (unpack === undefined) return Buffer.from(head).subarray(0, begins.length).toString() === begins;
  const unpacker = unpack();
  Readable.from([head]).pipe(unpacker);
  let text = '';
  try {
    for await (const chunk of unpacker as AsyncIterable<Buffer>) {
      text += chunk.subarray(0, begins.length).toString('latin1');
      if (text.length >= begins.length) break;
    }
  } catch {
    // What was cut off may have said enough.
  }
  return text.startsWith(begins);
}

/** Whether a path leads to a file of a database: to close it would drop the locks that this process has on it. */
function isPartOf(path: string, database: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  const files = ['', '-wal', '-shm'].map((end) => statSync(`${database}${end}`, { throwIfNoEntry: false }));
  return found !== undefined && files.some((file) => file?.ino === found.ino && file.dev === found.dev);
}

function openFile(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY);
  } catch (cause) {
    throw new TapeError('TAPE_IO', `cannot read '${path}': ${(cause as Error).message}`, { cause });
  }
}

function headOf(fd: number): Uint8Array {
  const head = Buffer.alloc(4);
  return fstatSync(fd).isFile() ? head.subarray(0, readSync(fd, head, 0, 4, 0)) : head;
}

/** What unpacks bytes that begin so; undefined for those that are not compressed. */
function packing(head: Uint8Array): (() => Transform) | undefined {
  if (head[0] === 0x1f && head[1] === 0x8b) return () => createGunzip();
  const isZstd = head[0] === 0x28 && head[1] === 0xb5 && head[2] === 0x2f && head[3] === 0xfd;
  return isZstd ? () => createZstdDecompress() : undefined;
}

function* chunksOf(fd: number): Generator<Uint8Array> {
  const isFile = fstatSync(fd).isFile();
  for (let at = 0; ; ) {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    const read = readSync(fd, chunk, 0, chunkBytes, isFile ? at : null);
    if (read === 0) return;
    at += read;
    yield chunk.subarray(0, read);
  }
}

/** Writes what a source unpacks to into a file without a name. */
async function spool(
  name: string,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  beside: string,
): Promise<Quarantine> {
  const fd = unnamedFile(beside);
  try {
    let written = 0;
    for await (const chunk of unpacked(name, chunks)) {
      for (let at = 0; at < chunk.byteLength; )
        at += writeSync(fd, chunk, at, chunk.byteLength - at, written + at);
      written += chunk.byteLength;
    }
    return { fd, name, size: written, close: () => closeSync(fd) };
  } catch (cause) {
    closeSync(fd);
    if (cause instanceof TapeError) throw cause;
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code?.startsWith('Z_') || code?.startsWith('ZSTD_') || code === 'ERR_STREAM_PREMATURE_CLOSE')
      throw badBundle(name, null, `it cannot be unpacked: ${message}`, { cause });
    throw new TapeError('TAPE_IO', `cannot import '${name}': ${message}`, { data: { file: name }, cause });
  }
}

/** Yields the bytes of a source, unpacked, and refuses to unpack without end. */
async function* unpacked(
  name: string,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const reading = Readable.from(chunks, { objectMode: true })[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let size = 0;
  while (size < 4) {
    const { done, value } = (await reading.next()) as IteratorResult<Uint8Array>;
    if (done === true) break;
    first.push(value);
    size += value.byteLength;
  }
  let given = 0;
  async function* all(): AsyncGenerator<Uint8Array> {
    for (const chunk of first) {
      given += chunk.byteLength;
      yield chunk;
    }
    for (;;) {
      const { done, value } = (await reading.next()) as IteratorResult<Uint8Array>;
      if (done === true) return;
      given += value.byteLength;
      yield value;
    }
  }
  const unpack = packing(Buffer.concat(first));
  let made = 0;
  const fault = () =>
    made > bundleBytesMax
      ? `it has over ${bundleBytesMax} bytes`
      : unpack !== undefined && made > ratioFrom && made > ratioMax * given
        ? `it unpacks to over ${ratioMax} times its size`
        : undefined;
  const source = unpack === undefined ? all() : piped(all(), unpack());
  for await (const chunk of source) {
    made += chunk.byteLength;
    const why = fault();
    if (why !== undefined) throw badBundle(name, null, why);
    yield chunk;
  }
}

async function* piped(chunks: AsyncIterable<Uint8Array>, unpacker: Transform): AsyncGenerator<Uint8Array> {
  const source = Readable.from(chunks, { objectMode: true });
  source.on('error', (error) => unpacker.destroy(error));
  source.pipe(unpacker);
  try {
    for await (const chunk of unpacker as AsyncIterable<Uint8Array>) yield chunk;
  } finally {
    source.destroy();
    unpacker.destroy();
  }
}

/** Opens a new file of mode 0600 beside a database, or among temporary files, and takes its name away. */
function unnamedFile(beside: string): number {
  const directory = beside === ':memory:' || beside.includes('://') ? tmpdir() : dirname(beside);
  const path = join(directory, `import-${randomBytes(6).toString('hex')}.part`);
  try {
    const fd = openSync(
      path,
      constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      0o600,
    );
    rmSync(path);
    return fd;
  } catch (cause) {
    throw new TapeError('TAPE_IO', `cannot write in '${directory}': ${(cause as Error).message}`, { cause });
  }
}
