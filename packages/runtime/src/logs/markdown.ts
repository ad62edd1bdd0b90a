import { isJoining } from '@tapedeck/tape/internal';

/** Characters that can steer a terminal or mislead a reader: controls, bidi and zero-width marks, tags. */
const unsafe = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** A text with unsafe characters as escapes, and one kind of line ends. */
function safe(text: string): string {
  const lines = text.replaceAll('\r\n', '\n');
  return lines.replace(unsafe, (c, at: number) =>
    isJoining(lines, at) ? c : `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** A text as a block quote. Nothing in it, such as a heading or an open fence, reaches beyond it. */
export function quoted(text: string): string {
  return safe(text)
    .split('\n')
    .map((line) => (line === '' ? '>' : `> ${line}`))
    .join('\n');
}

/** A text as a block of code, in a fence that is longer than any in it. */
export function fenced(text: string, language = ''): string {
  const body = safe(text);
  const longest = Math.max(2, ...Array.from(body.matchAll(/`+/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${body}${body.endsWith('\n') || body === '' ? '' : '\n'}${fence}`;
}

/** JSON as a block of code. */
export function jsonBlock(value: unknown): string {
  return fenced(JSON.stringify(value, undefined, 2), 'json');
}

/** Characters of a text on a line. */
const lineMax = 200;

/** A text of others on one line, as code, cut to its beginning. */
export function code(text: string): string {
  const flat = safe(text.slice(0, lineMax).replace(/\s+/g, ' ').trim());
  const cut = text.length > lineMax ? `${flat}…` : flat;
  const longest = Math.max(0, ...Array.from(cut.matchAll(/`+/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const space = longest > 0 || cut === '' ? ' ' : '';
  return `${fence}${space}${cut}${space}${fence}`;
}

/** JSON on one line, as code, whole. */
export function codeOf(value: unknown): string {
  const text = safe(JSON.stringify(value));
  const longest = Math.max(0, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const space = longest > 0 ? ' ' : '';
  return `${fence}${space}${text}${space}${fence}`;
}
