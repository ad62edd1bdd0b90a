import { TooLargeError } from '../errors/kinds.ts';

/** Entries of an exported file, and characters of its data: browsers have no longer texts, or not the memory for them. */
const entriesMax = 500_000;
const charsMax = 250_000_000;

/**
 * Refuses what has too many entries for one file, before any is read.
 * @throws TooLargeError
 */
export function assertFits(session: string, entries: number): void {
  if (entries > entriesMax)
    throw tooLarge(session, `${entries} entries are more than ${entriesMax}`, { entries });
}

/**
 * Passes the pieces of a text on while a file can have them.
 * @throws TooLargeError
 */
export async function* fitting<T>(
  session: string,
  pieces: AsyncGenerator<string, T>,
): AsyncGenerator<string, T> {
  for (let chars = 0; ; ) {
    const next = await pieces.next();
    if (next.done === true) return next.value;
    chars += next.value.length;
    if (chars > charsMax) throw tooLarge(session, `its data is longer than ${charsMax} characters`, {});
    yield next.value;
  }
}

function tooLarge(session: string, why: string, data: { readonly entries?: number }): TooLargeError {
  return new TooLargeError(`cannot export ${session} as one page: ${why}`, { session, ...data });
}
