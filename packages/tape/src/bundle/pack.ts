import { closeSync, createWriteStream, openSync, writeSync } from 'node:fs';
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { createGzip, createZstdCompress } from 'node:zlib';
import { TapeError } from '../errors.ts';
import { dropDraft, keepDraft, newDraft } from '../sqlite/draft-file.ts';
import type { BundleWritten } from './write.ts';

/** Memory of this size is used again at once; of larger pieces the system takes and gives each. */
const chunkBytes = 64 * 1024;

/**
 * Writes the lines of a bundle to a new file, compressed where its name ends with `.zst` or `.gz`. The file has its name
 * once it is complete, and mode 0600 from the start. Never replaces an existing file.
 * @throws TAPE_EXISTS, TAPE_CANNOT_OPEN, TAPE_IO
 */
export async function saveBundle(
  file: string,
  lines: Generator<string, BundleWritten>,
): Promise<BundleWritten> {
  if (packingOf(file) !== undefined) return await saveText(file, lines);
  return await saved(file, async (draft) => await writeLines(draft, lines));
}

/** Writes a text that is made in pieces to a new file, as `saveBundle` does; returns what its generator returns. */
export async function saveText<T>(file: string, pieces: Pieces<T>): Promise<T> {
  const ends: T[] = [];
  async function* chunks(): AsyncGenerator<Uint8Array> {
    ends.push(yield* encoded(pieces));
  }
  await saved(file, async (draft) => await stream(chunks(), draft, file));
  return ends[0] as T;
}

/** A text in pieces. */
type Pieces<T> = Generator<string, T> | AsyncGenerator<string, T>;

async function* encoded<T>(pieces: Pieces<T>): AsyncGenerator<Uint8Array, T> {
  let kept = '';
  for (;;) {
    const { done, value } = await pieces.next();
    if (done === true) {
      yield Buffer.from(kept);
      return value;
    }
    kept += value;
    if (kept.length < chunkBytes) continue;
    yield Buffer.from(kept);
    kept = '';
  }
}

async function stream(
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  draft: string,
  file: string,
): Promise<void> {
  const packing = packingOf(file);
  const out = createWriteStream(draft, { flags: 'r+', mode: 0o600 });
  const from = Readable.from(chunks, { objectMode: true });
  await (packing === undefined ? pipeline(from, out) : pipeline(from, packing, out));
}

/** Has a draft written, which becomes the file once it is complete. */
async function saved<T>(file: string, write: (draft: string) => Promise<T>): Promise<T> {
  const draft = newDraft(file);
  try {
    const written = await write(draft);
    keepDraft(draft, file);
    return written;
  } catch (cause) {
    if (cause instanceof TapeError) throw cause;
    const { code, syscall } = cause as NodeJS.ErrnoException;
    // An error of what is written is its own.
    if (code === undefined || syscall === undefined) throw cause;
    throw new TapeError('TAPE_IO', `cannot write '${file}': ${(cause as Error).message}`, {
      data: { file },
      cause,
    });
  } finally {
    dropDraft(draft);
  }
}

/** Number of chunks after which others have their turn. */
const pauseEvery = 16;

/**
 * Writes lines as they are, through one chunk of memory: a stream, or one write for each line, would take as long as to
 * make them. Returns what their generator returns.
 */
async function writeLines<T>(draft: string, lines: Generator<string, T>): Promise<T> {
  const chunk = Buffer.allocUnsafe(chunkBytes);
  const fd = openSync(draft, 'r+');
  try {
    for (let [filled, written] = [0, 0]; ; ) {
      const { done, value } = lines.next();
      const line = done === true ? '' : value;
      // No character takes more than three bytes.
      const fits = line.length * 3 <= chunkBytes - filled;
      if (done === true || !fits) {
        writeAll(fd, chunk.subarray(0, filled));
        filled = 0;
        written += 1;
        if (written % pauseEvery === 0) await setImmediate();
      }
      if (done === true) return value;
      if (line.length * 3 > chunkBytes) writeAll(fd, Buffer.from(line));
      else filled += chunk.write(line, filled);
    }
  } finally {
    closeSync(fd);
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

function packingOf(file: string): Transform | undefined {
  if (file.endsWith('.zst')) return createZstdCompress();
  return file.endsWith('.gz') ? createGzip() : undefined;
}
