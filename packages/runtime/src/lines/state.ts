import { contentOf } from './content.ts';
import { blockBytes, blockStart, ContentDigest } from './digest.ts';
import { beginning, type ReadState } from './lines.ts';
import type { OpenFile } from './open.ts';
import { type LinePlace, LineSplitter } from './splitter.ts';

/**
 * The state that a whole reading of a file ends with, without its records: for what another reader has read.
 * @throws IMPORT_CANNOT_READ, IMPORT_TOO_LARGE
 */
export async function stateOf(file: OpenFile): Promise<ReadState> {
  const splitter = new LineSplitter(beginning, { bytesMax: 0 });
  const digest = new ContentDigest(beginning.digest);
  for await (const chunk of contentOf(file)) {
    splitter.push(chunk);
    digest.push(chunk);
  }
  return { ...splitter.place, digest: digest.value() };
}

/** The state of a reading that stopped at a line before the place at which it did. Reads the block in which that begins. */
export function stateBefore(file: OpenFile, { digest }: ReadState, { line, offset }: LinePlace): ReadState {
  const start = blockStart(offset);
  const known = { size: offset, blocks: digest.blocks.filter((_, i) => i * blockBytes < start), tail: '' };
  const before = new ContentDigest(known);
  const bytes = Buffer.allocUnsafeSlow(offset - start);
  before.pushAll(bytes.subarray(0, file.readInto(bytes, start)));
  return { line, offset, digest: before.value() };
}
