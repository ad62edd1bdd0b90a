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
  let inString = false;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (inString) {
      if (byte === backslash) i += 1;
      else if (byte === quotes) inString = false;
    } else if (byte === quotes) inString = true;
    else if (byte === comma || opens(byte, bytes[i + 1])) {
      values += 1;
      if (values > valuesMax) return i;
    }
  }
  return undefined;
}

/** Whether a list or an object begins that has something in it. */
function opens(byte: number | undefined, next: number | undefined): boolean {
  return (byte === openBracket || byte === openBrace) && next !== byte + toClosing;
}
