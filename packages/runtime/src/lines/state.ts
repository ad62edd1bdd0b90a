import { contentOf } from './content.ts';
import { ContentDigest } from './digest.ts';
import { beginning, type ReadState } from './lines.ts';
import type { OpenFile } from './open.ts';
import { LineSplitter } from './splitter.ts';

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
