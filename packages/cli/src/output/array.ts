import { jsonText } from '../escape.ts';
import type { Io } from '../io.ts';

/** How much of a document is kept until it is printed, in characters. */
const keptMax = 1_000_000;

/**
 * Prints a JSON array. A short one is printed at once, so that an error leaves no half of it on stdout; a long one as its
 * elements are read, so that it needs little memory.
 */
export async function printArray({ out }: Pick<Io, 'out'>, elements: Iterable<unknown>): Promise<void> {
  let kept = '[';
  let separator = '';
  for (const element of elements) {
    kept += separator + jsonText(element);
    separator = ',';
    if (kept.length < keptMax) continue;
    await out(kept);
    kept = '';
  }
  await out(`${kept}]\n`);
}
