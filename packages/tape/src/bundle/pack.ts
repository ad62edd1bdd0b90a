import { createWriteStream } from 'node:fs';
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip, createZstdCompress } from 'node:zlib';
import { TapeError } from '../errors.ts';
import { dropDraft, keepDraft, newDraft } from '../sqlite/draft-file.ts';
import type { BundleWritten } from './write.ts';

const chunkChars = 256 * 1024;

/**
 * Writes the lines of a bundle to a new file, compressed where its name ends with `.zst` or `.gz`. The file has its name
 * once it is complete, and mode 0600 from the start. Never replaces an existing file.
 * @throws TAPE_EXISTS, TAPE_CANNOT_OPEN, TAPE_IO
 */
export async function saveBundle(
  file: string,
  lines: Generator<string, BundleWritten>,
): Promise<BundleWritten> {
  const draft = newDraft(file);
  try {
    const chunks = new Chunks(lines);
    const packing = packingOf(file);
    const out = createWriteStream(draft, { flags: 'r+', mode: 0o600 });
    const source = Readable.from(chunks, { objectMode: true });
    await (packing === undefined ? pipeline(source, out) : pipeline(source, packing, out));
    keepDraft(draft, file);
    return chunks.written;
  } catch (cause) {
    if (cause instanceof TapeError) throw cause;
    throw new TapeError('TAPE_IO', `cannot write '${file}': ${(cause as Error).message}`, {
      data: { file },
      cause,
    });
  } finally {
    dropDraft(draft);
  }
}

function packingOf(file: string): Transform | undefined {
  if (file.endsWith('.zst')) return createZstdCompress();
  return file.endsWith('.gz') ? createGzip() : undefined;
}

/** Joins lines to chunks: one write for each would cost more than to make it. */
class Chunks implements Iterable<string> {
  readonly #lines: Generator<string, BundleWritten>;
  #written: BundleWritten = { sessions: 0, entries: 0, withheld: 0, hashed: 0 };

  constructor(lines: Generator<string, BundleWritten>) {
    this.#lines = lines;
  }

  /** What was written, once all was. */
  get written(): BundleWritten {
    return this.#written;
  }

  *[Symbol.iterator](): Generator<string> {
    let chunk = '';
    for (;;) {
      const { done, value } = this.#lines.next();
      if (done === true) {
        this.#written = value;
        break;
      }
      chunk += value;
      if (chunk.length < chunkChars) continue;
      yield chunk;
      chunk = '';
    }
    if (chunk !== '') yield chunk;
  }
}
