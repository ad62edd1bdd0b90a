/** What a terminal sends before and after a text that was pasted, where it is asked to. */
const pasteStart = '\u001b[200~';
const pasteEnd = '\u001b[201~';

/** Stands for the end of a line in a line that is edited. */
const lineMark = '⏎';

/** A text that was typed or pasted, or a control character. */
export interface Keys {
  readonly text: string;
  readonly isPasted: boolean;
  /** What was typed after them. */
  readonly rest: string;
}

/**
 * The first of the keys that were typed: a text, or one control character, which can end the line. Undefined while the
 * rest of a paste has not come. Pure.
 */
export function nextKeys(typed: string): Keys | undefined {
  if (typed === '') return undefined;
  if (typed.startsWith(pasteStart)) {
    const end = typed.indexOf(pasteEnd);
    if (end === -1) return undefined;
    const text = pastedText(typed.slice(pasteStart.length, end));
    return { text, isPasted: true, rest: typed.slice(end + pasteEnd.length) };
  }
  // The beginning of a mark, whose rest has not come.
  if (typed.length > 2 && pasteStart.startsWith(typed)) return undefined;
  const [text = ''] = /^\P{Cc}+|^./su.exec(typed) ?? [];
  return { text, isPasted: false, rest: typed.slice(text.length) };
}

/** A pasted text as a part of one line. Other control characters than tabs are keys, and a paste presses none. */
function pastedText(text: string): string {
  return text.replace(/\r\n?|\n/g, lineMark).replace(/(?!\t)\p{Cc}/gu, '');
}

/** A line as it was meant, with its line ends. */
export function withLineEnds(line: string): string {
  return line.replaceAll(lineMark, '\n');
}

/** A text of several lines as one that can be edited. */
export function asLine(text: string): string {
  return pastedText(text);
}
