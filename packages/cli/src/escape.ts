/** Controls, bidi and zero-width marks, tags: whatever a terminal or an eye could take for more than text. */
const unsafe = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Text for a person: what could steer a terminal is shown as an escape, not passed through (law 10). */
export function safe(text: string): string {
  return text.replace(unsafe, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Text on one line, cut to so many characters. */
export function oneLine(text: string, width: number): string {
  const flat = safe(
    text
      .slice(0, width * 4)
      .replace(/\s+/g, ' ')
      .trim(),
  );
  return flat.length <= width ? flat : `${flat.slice(0, Math.max(0, width - 1)).toWellFormed()}…`;
}

/** A text as one word of a shell: names of directories may be made to do harm when a hint is pasted. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
