/** The spans of the JSON objects in a text, each from its `{` to after its `}`. */
export interface ObjectSpans {
  readonly spans: readonly { readonly from: number; readonly to: number }[];
  /** Where the text after the last complete object begins; the length of the text if none remains. */
  readonly rest: number;
  /** Whether there are more than two writers leave on a line: only the first are given. */
  readonly isCut?: true;
}

/** The most objects of a line: one can be tens of millions of them. */
export const spansMax: number = 1_000;

/**
 * Finds the consecutive objects on one line. Two writers that append at the same moment leave records without
 * a newline between them; matching braces outside strings separates them.
 */
export function objectSpans(text: string): ObjectSpans {
  const spans: { from: number; to: number }[] = [];
  let from = skipSpace(text, 0);
  while (text[from] === '{') {
    const to = objectEnd(text, from);
    if (to === undefined) break;
    spans.push({ from, to });
    if (spans.length > spansMax) return { spans, rest: to, isCut: true };
    from = skipSpace(text, to);
  }
  return { spans, rest: from };
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && /\s/.test(text.charAt(at))) at += 1;
  return at;
}

function objectEnd(text: string, from: number): number | undefined {
  let depth = 0;
  let inString = false;
  for (let i = from; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 92) i += 1;
      else if (c === 34) inString = false;
    } else if (c === 34) inString = true;
    else if (c === 123) depth += 1;
    else if (c === 125) {
      depth -= 1;
      if (depth === 0) return i + 1;
    }
  }
  return undefined;
}
