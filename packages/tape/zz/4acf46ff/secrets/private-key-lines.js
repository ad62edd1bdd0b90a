/** The first line of a private key, with nothing after it. */
const begin = /-----BEGIN (?:[A-Z]{1,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----[ \t\r]{0,16}\n/g;
/** What stands before a line is read this far. */
const prefixChars = 300;
/** No line of a key is longer. */
const lineChars = 600;
/** How many lines a key has at most, and how many headers and empty lines at its beginning. */
const linesMax = { body: 400, headers: 6 }         ;
/** The first line of the body is at least as long. */
const firstLine = 32;

const header = /(?:^|[^A-Za-z-])[A-Za-z-]{1,20}: \S/;
const ofBody = /[A-Za-z0-9+/=]/;

/** What stands before a line, such that all lines of a listing have the same: numbers are alike, and so are `:` and `-`. */
function shapeOf(prefix        )         {
  return prefix.replace(/\d+/g, '0').replace(/[:-]/g, ':').replace(/\s+/g, ' ').trim();
}

/**
 * Private keys whose lines have something before them: numbers, as in `cat -n`, names of files, as of `grep`, `> ` of a
 * quote. From the first line of the body to its last. Reads each line once.
 */
export function privateKeyLines(text        )                                 {
  const found                                 = [];
  for (const match of text.matchAll(begin)) {
    const before = text.slice(Math.max(0, match.index - prefixChars), match.index);
    const shape = shapeOf(before.slice(before.lastIndexOf('\n') + 1));
    if (shape === '') continue;
    const key = bodyAfter(text, match.index + match[0].length, shape);
    if (key !== undefined) found.push(key);
  }
  return found;
}

/** The lines of a body from `start` on, each after what `shape` ends with. */
function bodyAfter(text        , start        , shape        )                                           {
  let place                                                         ;
  let [headers, body] = [0, 0];
  for (let at = start; at < text.length && body < linesMax.body; ) {
    const window = text.slice(at, at + lineChars);
    const length = window.indexOf('\n');
    const line = (length === -1 ? window : window.slice(0, length)).replace(/[\s"'},\]]+$/, '');
    let from = line.length;
    while (from > 0 && ofBody.test(line.charAt(from - 1))) from -= 1;
    const own = shapeOf(line.slice(0, from));
    const isBody =
      place === undefined ? line.length - from >= firstLine && shape.endsWith(own) : own === place.shape;
    if (isBody && from < line.length) {
      place = { from: place?.from ?? at + from, to: at + line.length, shape: own };
      body += 1;
    } else if (place !== undefined || headers === linesMax.headers || !isBefore(line, shape)) break;
    else headers += 1;
    if (length === -1) break;
    at += length + 1;
  }
  return place && { from: place.from, to: place.to };
}

/** Whether a line can stand before the body: a header, or an empty one. */
function isBefore(line        , shape        )          {
  return header.test(line) || shape.endsWith(shapeOf(line));
}
