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
  const chunks = new Chunks(lines);
  await saved(file, async (draft) => {
    if (packingOf(file) === undefined) await writeChunks(draft, chunks);
    else await stream(chunks, draft, file);
  });
  return chunks.written;
}

/** Writes a text that is made in pieces to a new file, as `saveBundle` does; returns what its generator returns. */
export async function saveText<T>(file: string, pieces: AsyncGenerator<string, T>): Promise<T> {
  const ends: T[] = [];
  async function* chunks(): AsyncGenerator<Uint8Array> {
    ends.push(yield* encoded(pieces));
  }
  await saved(file, async (draft) => await stream(chunks(), draft, file));
  return ends[0] as T;
}

async function* encoded<T>(pieces: AsyncGenerator<string, T>): AsyncGenerator<Uint8Array, T> {
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
async function saved(file: string, write: (draft: string) => Promise<void>): Promise<void> {
  const draft = newDraft(file);
  try {
    await write(draft);
    keepDraft(draft, file);
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

/** Writes chunks as they are: a stream would take as long as to make them. */
async function writeChunks(draft: string, chunks: Iterable<Uint8Array>): Promise<void> {
  const fd = openSync(draft, 'r+');
  try {
    let written = 0;
    for (const chunk of chunks) {
      for (let at = 0; at < chunk.length; ) at += writeSync(fd, chunk, at);
      written += 1;
      if (written % pauseEvery === 0) await setImmediate();
    }
  } finally {
    closeSync(fd);
  }
}

function packingOf(file: string): Transform | undefined {
  if (file.endsWith('.zst')) return createZstdCompress();
  return file.endsWith('.gz') ? createGzip() : undefined;
}

/** Encodes lines into chunks: one write for each line, or one text of many, would cost more than to make them. */
class Chunks implements Iterable<Uint8Array> {
  readonly #lines: Generator<string, BundleWritten>;
  #written: BundleWritten = { sessions: 0, entries: 0, withheld: 0, hashed: 0 };

  constructor(lines: Generator<string, BundleWritten>) {
    this.#lines = lines;
  }

  /** What was written, once all was. */
  get written(): BundleWritten {
    return this.#written;
  }

  *[Symbol.iterator](): Generator<Uint8Array> {
    let chunk = Buffer.allocUnsafe(chunkBytes);
    let filled = 0;
    for (;;) {
      const { done, value } = this.#lines.next();
      if (done === true) {
        this.#written = value;
        break;
      }
      // No character takes more than three bytes.
      if (value.length * 3 > chunkBytes - filled) {
        if (filled > 0) yield chunk.subarray(0, filled);
        chunk = Buffer.allocUnsafe(chunkBytes);
        filled = 0;
      }
      if (value.length * 3 > chunkBytes) yield Buffer.from(value);
      else filled += chunk.write(value, filled);
    }
    yield chunk.subarray(0, filled);
  }
}
