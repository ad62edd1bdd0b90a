import { Readable } from 'node:stream';
import { constants, createGunzip, createZstdDecompress } from 'node:zlib';
import { quote } from '@tapedeck/tape/internal';
import { ImportError } from './errors.ts';
import { cannotRead, type OpenFile } from './open.ts';

/** What can be read from any offset on: a file, or bytes in memory. */
export interface Packed extends Pick<OpenFile, 'path' | 'chunks'> {
  readonly facts: Pick<OpenFile['facts'], 'size'>;
}

/** Bytes in memory as a file, such as those of a pipe. @param path what to call them */
export function packedBytes(path: string, bytes: Uint8Array): Packed {
  return {
    path,
    facts: { size: bytes.length },
    *chunks(from) {
      yield bytes.subarray(from);
    },
  };
}

/** How a file is compressed. */
export type Compression = 'zstd' | 'gzip';

/** How much a compressed file may become. */
export interface ContentLimits {
  /** A file that grew to this many bytes … */
  readonly bytes: number;
  /** … may have grown by this factor at most. */
  readonly ratio: number;
}

/**
 * Transcripts compress by a factor of 5 to 50, and by some hundreds where they repeat themselves. What a small file becomes
 * takes some seconds, whatever it is; how many records it may become, `LineReading` knows.
 */
const contentLimits: ContentLimits = { bytes: 64 * 1024 * 1024, ratio: 500 };

/** How a file is compressed, by its first bytes, whatever its name is; undefined for plain content. Pure. */
function compressionOf(head: Uint8Array): Compression | undefined {
  const [first = 0] = head;
  const begins = (...magic: readonly number[]) => magic.every((byte, i) => head[i] === byte);
  // A frame to skip, with which `pzstd` begins, has one of sixteen numbers (RFC 8878, 3.1.2).
  const isSkipped = first >> 4 === 5 && begins(first, 0x2a, 0x4d, 0x18);
  if (begins(0x28, 0xb5, 0x2f, 0xfd) || isSkipped) return 'zstd';
  return begins(0x1f, 0x8b) ? 'gzip' : undefined;
}

/** How archives begin that are not read, and in which byte. */
const archives: readonly (readonly [what: string, at: number, magic: readonly number[]])[] = [
  ['compressed with bzip2', 0, [0x42, 0x5a, 0x68]],
  ['compressed with xz', 0, [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]],
  ['compressed with lz4', 0, [0x04, 0x22, 0x4d, 0x18]],
  ['a zip archive', 0, [0x50, 0x4b, 0x03, 0x04]],
  ['a 7z archive', 0, [0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c]],
  ['a tar archive', 257, [0x75, 0x73, 0x74, 0x61, 0x72]],
];

/** What a file is that has to be unpacked before it can be read, by its first bytes; undefined for any other. Pure. */
export function archiveOf(head: Uint8Array): string | undefined {
  return archives.find(([, at, magic]) => magic.every((byte, i) => head[at + i] === byte))?.[0];
}

/** How an open file is compressed. */
export function compressionIn(file: Packed): Compression | undefined {
  for (const chunk of file.chunks(0)) return compressionOf(chunk);
  return undefined;
}

/**
 * The content of a file from an offset of the content on, decompressed piece by piece. A compressed file is read from its
 * beginning, since nothing in it can be found by its offset. Each piece is good until the next one.
 * @throws IMPORT_CANNOT_READ for damaged or cut off compression, with the offset in the content; IMPORT_TOO_LARGE
 */
export async function* contentOf(
  file: Packed,
  { from = 0, limits = contentLimits }: { readonly from?: number; readonly limits?: ContentLimits } = {},
): AsyncGenerator<Uint8Array> {
  const compression = compressionIn(file);
  if (compression === undefined) {
    yield* file.chunks(from, { isBrief: true });
    return;
  }
  let at = 0;
  for await (const chunk of decompressed(file, compression, limits)) {
    const skip = Math.min(Math.max(from - at, 0), chunk.length);
    at += chunk.length;
    if (skip < chunk.length) yield chunk.subarray(skip);
  }
}

async function* decompressed(
  file: Packed,
  compression: Compression,
  limits: ContentLimits,
): AsyncGenerator<Uint8Array> {
  let [taken, at] = [0, 0];
  // Node reads the first frame of zstd and leaves the others unread, without a word.
  while (at < file.facts.size) {
    const stream = decompressor(compression);
    const source = Readable.from(file.chunks(at), { objectMode: false, highWaterMark: chunkSize });
    source.on('error', (error) => stream.destroy(error));
    try {
      for await (const chunk of source.pipe(stream)) {
        taken += chunk.length;
        if (taken > limits.bytes && taken > (at + stream.bytesWritten) * limits.ratio)
          throw tooLarge(file, { taken, given: at + stream.bytesWritten });
        yield chunk;
      }
      if (stream.bytesWritten === 0) throw new Error('nothing follows a frame but other bytes');
    } catch (cause) {
      if (cause instanceof ImportError) throw cause;
      throw cannotRead(file.path, `its ${compression} data is damaged or cut off`, cause, taken);
    } finally {
      source.destroy();
      stream.destroy();
    }
    at = compression === 'zstd' ? at + stream.bytesWritten : file.facts.size;
  }
}

const chunkSize = 256 * 1024;

function decompressor(compression: Compression) {
  // A frame may ask for a window of up to 2 GiB: one above 128 MiB is refused.
  const params = { [constants.ZSTD_d_windowLogMax]: 27 };
  return compression === 'gzip' ? createGunzip({ chunkSize }) : createZstdDecompress({ chunkSize, params });
}

function tooLarge({ path }: Packed, { taken, given }: { readonly taken: number; readonly given: number }) {
  return new ImportError(
    'IMPORT_TOO_LARGE',
    `cannot read ${quote(path)}: ${given} compressed bytes of it become more than ${taken}`,
    { data: { file: path, offset: taken, why: `${given} compressed bytes become more than ${taken}` } },
  );
}
