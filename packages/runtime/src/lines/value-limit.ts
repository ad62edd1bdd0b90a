/**
 * The most values of a line, which take many times their bytes once they are parsed. A line of a real transcript has under
 * 2,000; a saved session of NEXUS3, which is read as one line, has some for each message.
 */
export const valuesMax: number = 250_000;

/** So short a line cannot have more: a value takes its own byte and a comma. */
const free = 2 * valuesMax;

const [quotes, comma, backslash] = [0x22, 0x2c, 0x5c];
const [openBracket, openBrace] = [0x5b, 0x7b];
/** How far `]` and `}` are behind `[` and `{`. */
const toClosing = 2;

/**
 * Where a line has more values than any record; undefined if it has not. Counts them before they are parsed, by the commas
 * and by the lists and objects that are not empty: with tens of millions of empty lists, a line of 60 MB keeps the parser,
 * and the collection of what it leaves, busy for minutes. Pure.
 */
export function excessIn(bytes: Uint8Array): number | undefined {
  if (bytes.length <= free) return undefined;
  let values = 1;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (byte === quotes) i = endOfString(bytes, i);
    else if (byte === comma || opens(byte, bytes[i + 1])) {
      values += 1;
      if (values > valuesMax) return i;
    }
  }
  return undefined;
}

/** Where a string ends that begins at a place. To search for its end is native code: most of a long line is in strings. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let end = bytes.indexOf(quotes, start + 1); end > 0; end = bytes.indexOf(quotes, end + 1)) {
    let before = end;
    while (bytes[before - 1] === backslash) before -= 1;
    if ((end - before) % 2 === 0) return end;
  }
  return bytes.length;
}

/** Whether a list or an object begins that has something in it. */
function opens(byte: number | undefined, next: number | undefined): boolean {
  return (byte === openBracket || byte === openBrace) && next !== byte + toClosing;
}
