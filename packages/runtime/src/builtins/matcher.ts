import { createContext, Script } from 'node:vm';
import { messageOf } from '../errors.ts';
import { BuiltinError } from './errors.ts';

/** A line of a file in which a pattern is. */
export interface MatchingLine {
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
}

/** Finds the lines of files in which a pattern is. */
export interface Matcher {
  /** How many bytes of files to collect for one call. */
  readonly batchBytes: number;
  /**
   * The lines of each file, at most so many of one.
   * @throws PatternTimeout when the pattern takes too long on them
   */
  match(files: readonly Buffer[], most: number): readonly (readonly MatchingLine[])[];
}

/** A pattern takes too long. */
export class PatternTimeout extends Error {
  override readonly name = 'PatternTimeout';
}

/** How long one call of a regular expression may take, in milliseconds: the process does nothing else then. */
const batchMs = 1_000;

const [lineFeed, carriageReturn] = [0x0a, 0x0d];

/** Binary files are those with a null byte in their first bytes, as for git. */
const binaryBytes = 8_000;

/** Makes the matcher of a pattern. @throws TOOL_BAD_PATTERN */
export function matcherOf(
  pattern: string,
  { isRegExp, ignoreCase }: { readonly isRegExp: boolean; readonly ignoreCase: boolean },
): Matcher {
  if (!isRegExp && !ignoreCase) return literalMatcher(Buffer.from(pattern));
  return regExpMatcher(isRegExp ? pattern : RegExp.escape(pattern), ignoreCase ? 'i' : '');
}

/** Compares bytes, without decoding what has no match. */
function literalMatcher(wanted: Buffer): Matcher {
  const linesOf = (bytes: Buffer, most: number): readonly MatchingLine[] => {
    let at = bytes.indexOf(wanted);
    if (at === -1 || isBinary(bytes)) return [];
    const found: MatchingLine[] = [];
    let [line, counted] = [1, 0];
    while (at !== -1 && found.length < most) {
      const start = at === 0 ? 0 : bytes.lastIndexOf(lineFeed, at - 1) + 1;
      for (let feed = bytes.indexOf(lineFeed, counted); feed !== -1 && feed < start; line += 1) {
        counted = feed + 1;
        feed = bytes.indexOf(lineFeed, counted);
      }
      const end = bytes.indexOf(lineFeed, at + wanted.length - 1);
      found.push({ line, text: lineText(bytes, at, { start, end: end === -1 ? bytes.length : end }) });
      at = end === -1 ? -1 : bytes.indexOf(wanted, end + 1);
    }
    return found;
  };
  return { batchBytes: 0, match: (files, most) => files.map((bytes) => linesOf(bytes, most)) };
}

/**
 * Runs a regular expression in time: one that goes back and forth for ever is stopped. Where it looks at nothing around
 * what it takes, a whole file is tried before its lines.
 */
function regExpMatcher(source: string, flags: string): Matcher {
  const expression = compiled(source, flags);
  const whole = /\(\?(?:[=!]|<[=!])/.test(source)
    ? undefined
    : new RegExp(expression, `${expression.flags}m`);
  const linesOf = (bytes: Buffer, most: number): readonly MatchingLine[] => {
    if (isBinary(bytes)) return [];
    const text = bytes.toString('utf8');
    if (whole?.test(text) === false) return [];
    const found: MatchingLine[] = [];
    let line = 0;
    for (let start = 0; start < text.length && found.length < most; line += 1) {
      const feed = text.indexOf('\n', start);
      const end = feed === -1 ? text.length : feed;
      const content = text.slice(start, text[end - 1] === '\r' ? Math.max(start, end - 1) : end);
      const at = content.search(expression);
      if (at !== -1) found.push({ line: line + 1, text: excerpt(content, at) });
      start = end + 1;
    }
    return found;
  };
  let files: readonly Buffer[] = [];
  let most = 0;
  const context = createContext({ run: () => files.map((bytes) => linesOf(bytes, most)) });
  const script = new Script('run()');
  return {
    batchBytes: 1024 * 1024,
    match: (given, limit) => {
      [files, most] = [given, limit];
      try {
        return script.runInContext(context, { timeout: batchMs }) as readonly (readonly MatchingLine[])[];
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
        throw new PatternTimeout(`it took longer than ${batchMs} ms`, { cause: error });
      }
    },
  };
}

/** Patterns that are none with the rules of Unicode, such as `\-`, are read without them. */
function compiled(source: string, flags: string): RegExp {
  try {
    return new RegExp(source, `${flags}u`);
  } catch {
    try {
      return new RegExp(source, flags);
    } catch (error) {
      throw new BuiltinError('TOOL_BAD_PATTERN', `cannot search: ${messageOf(error)}`, { cause: error });
    }
  }
}

function isBinary(bytes: Buffer): boolean {
  const zero = bytes.indexOf(0);
  return zero !== -1 && zero < binaryBytes;
}

/** The most characters of a line that are shown, and how many of them before the match. */
const [shownMax, before] = [300, 100];

/** The part of a line around a match. */
function excerpt(text: string, at: number): string {
  if (text.length <= shownMax) return text;
  const from = Math.max(0, Math.min(at - before, text.length - shownMax));
  const part = text.slice(from, from + shownMax).toWellFormed();
  return `${from > 0 ? '…' : ''}${part}${from + shownMax < text.length ? '…' : ''}`;
}

/** The same of bytes: no more of a long line is decoded than what can be shown. */
function lineText(bytes: Buffer, at: number, { start, end }: { start: number; end: number }): string {
  const last = end > start && bytes[end - 1] === carriageReturn ? end - 1 : end;
  const near = 4 * shownMax;
  const [from, to] = [Math.max(start, at - near), Math.min(last, at + near)];
  return excerpt(bytes.toString('utf8', from, to), bytes.toString('utf8', from, at).length);
}
