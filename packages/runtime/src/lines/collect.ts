/** What is left of a longer line is collected at once: it takes several times its size. */
const bytesMax = 4 * 1024 * 1024;

/**
 * Parses a line of some bytes. Around that of a long one, garbage is collected, in a process that lets programs do that: V8
 * itself would wait until there are two or three such lines.
 */
export function collecting<T>(bytes: number, parse: () => T): T {
  if (bytes < bytesMax || globalThis.gc === undefined) return parse();
  globalThis.gc();
  const parsed = parse();
  globalThis.gc();
  return parsed;
}
