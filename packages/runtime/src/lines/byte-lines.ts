/** A line of a file as bytes, without its newline. */
export interface ByteLine {
  /** 1, 2, 3 … */
  readonly line: number;
  /** Bytes of the file before this line. */
  readonly offset: number;
  readonly bytes: Uint8Array;
  /** Whether a newline ends it; only the last line of a file may lack one. */
  readonly ended: boolean;
}

/**
 * Splits chunks of bytes into lines at 0x0A only: U+2028 and U+2029 are ordinary characters in a JSON string,
 * and splitting there would break records. Skips empty lines. Yields a line that exceeds `bytesMax` before it
 * is complete, so that the caller can reject it before it fills the memory.
 */
export function* byteLines(
  chunks: Iterable<Uint8Array>,
  { bytesMax }: { bytesMax: number },
): Generator<ByteLine> {
  let line = 1;
  let offset = 0;
  let pieces: Uint8Array[] = [];
  let length = 0;

  const take = (piece: Uint8Array): void => {
    pieces.push(piece);
    length += piece.length;
  };
  const give = (ended: boolean): ByteLine => {
    const bytes = pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces, length);
    return { line, offset, bytes, ended };
  };

  for (const chunk of chunks) {
    let from = 0;
    for (let to = chunk.indexOf(0x0a); to !== -1; to = chunk.indexOf(0x0a, from)) {
      take(chunk.subarray(from, to));
      if (length > 0) yield give(true);
      line += 1;
      offset += length + 1;
      pieces = [];
      length = 0;
      from = to + 1;
    }
    if (from < chunk.length) take(chunk.subarray(from));
    if (length > bytesMax) yield give(false);
  }
  if (length > 0) yield give(false);
}
