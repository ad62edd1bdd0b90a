import type { TapeError } from '@tapedeck/tape';

/** A session that was left out, as JSON. */
export function refusedJson(
  refused: readonly { readonly session: string; readonly error: TapeError }[],
): readonly { readonly session: string; readonly code: string; readonly message: string }[] {
  return refused.map(({ session, error: { code, message } }) => ({ session, code, message }));
}

/** A number of bytes for a reader. */
export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [unit, size] = bytes < 1_000_000 ? ['KB', bytes / 1000] : ['MB', bytes / 1_000_000];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${unit}`;
}
