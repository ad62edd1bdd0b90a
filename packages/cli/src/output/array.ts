import { jsonText } from '../escape.ts';
import type { Io } from '../io.ts';

/** How much of a document is kept until it is printed, in characters. */
const keptMax = 1_000_000;

/**
 * Prints a JSON array, with what is before and after it in its document. A short one is printed at once, so that an error leaves no half of it on stdout; a long one as its
 * elements are read, so that it needs little memory.
 */
export async function printArray(
  { out }: Pick<Io, 'out'>,
  elements: Iterable<unknown> | AsyncIterable<unknown>,
  { before = '', after = '' }: { readonly before?: string; readonly after?: string } = {},
): Promise<void> {
  let kept = `${before}[`;
  let separator = '';
  for await (const element of elements) {
    kept += separator + jsonText(element);
    separator = ',';
    if (kept.length < keptMax) continue;
    await out(kept);
    kept = '';
  }
  await out(`${kept}]${after}\n`);
}

/** Prints lines, those of a short list at once, and returns their number. */
export async function printLines(
  { out }: Pick<Io, 'out'>,
  lines: Iterable<string> | AsyncIterable<string>,
): Promise<number> {
  let kept = '';
  let count = 0;
  for await (const line of lines) {
    kept += `${line}\n`;
    count += 1;
    if (kept.length < keptMax) continue;
    await out(kept);
    kept = '';
  }
  if (kept !== '') await out(kept);
  return count;
}
