import { isJoining, joinableEnd } from '@tapedeck/tape/internal';
import { cutText } from './terminal/width.ts';

/** Characters that can steer a terminal or mislead a reader: controls, bidi and zero-width marks, tags. */
const unsafe = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * Text for display, with unsafe characters shown as escapes: content of a tape must not steer the terminal. Those stay
 * that join emoji, or letters of scripts that need them.
 */
export function safe(text: string): string {
  return text.replace(unsafe, (c, at: number) =>
    isJoining(text, at) ? c : `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** Shows a text that comes in pieces as `safe` shows the whole: an end that the next piece may join waits for it. */
export class SafePieces {
  #kept = '';

  take(piece: string): string {
    const text = this.#kept + piece;
    const end = joinableEnd(text);
    this.#kept = text.slice(end);
    return safe(text.slice(0, end));
  }

  /** What is left at the end. */
  rest(): string {
    const rest = this.#kept;
    this.#kept = '';
    return safe(rest);
  }
}

/**
 * JSON for output: the same data, with unsafe characters as escapes of JSON, so that a terminal that it is printed on
 * is not steered.
 */
export function jsonText(value: unknown): string {
  return safeJson(JSON.stringify(value));
}

/** The same of what is JSON already, or a piece of it: the escapes change no value. */
export function safeJson(text: string): string {
  return text.replace(unsafe, (c) =>
    Array.from({ length: c.length }, (_, i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, '0')}`).join(
      '',
    ),
  );
}

/** The most code units of a column that are looked at: emoji of families have a dozen for two. */
const unitsMax = 8;

/** Text on one line, cut to `width` columns. */
export function oneLine(text: string, width: number): string {
  const flat = safe(
    text
      .slice(0, width * unitsMax)
      .replace(/\s+/g, ' ')
      .trim(),
  );
  return cutText(flat, width);
}

/** A path as a part of a line: what would end that, or tear it apart, is an escape. */
export function pathText(path: string): string {
  return safe(path.replaceAll('\n', '\\n').replaceAll('\t', '\\t'));
}

/** Quotes a text as one shell word, so that a hint with a hostile directory name is safe to paste. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The text of a word that `shellWord` wrote. */
export function plainWord(word: string): string {
  return word.startsWith("'") ? word.slice(1, -1).replaceAll("'\\''", "'") : word;
}

/**
 * The words of a command behind its verb, and its options, as a shell reads them: none of the words is taken for an option.
 */
export function commandWords(words: readonly string[], options: readonly string[] = []): string {
  const read = words.map(shellLine);
  const isMistaken = words.some((word) => word.startsWith('-'));
  return (isMistaken ? [...options, '--', ...read] : [...read, ...options]).join(' ');
}

/** The command of a verb, as a shell reads it. A session, or an entry of it, is a word, whatever its name. */
export function commandLine(verb: string, words: readonly string[], options: readonly string[] = []): string {
  return `tape ${verb} ${commandWords(words, options)}`.trimEnd();
}

/** As `shellWord`, on one line and without unsafe characters, as bash and zsh read it. */
export function shellLine(text: string): string {
  if (!text.includes('\n') && !text.includes('\t') && safe(text) === text) return shellWord(text);
  const escaped = text
    .replace(/[\\']/g, '\\$&')
    .replaceAll('\n', '\\n')
    .replaceAll('\t', '\\t')
    .replace(unsafe, (c) => `\\U${(c.codePointAt(0) ?? 0).toString(16).padStart(8, '0')}`);
  return `$'${escaped}'`;
}
