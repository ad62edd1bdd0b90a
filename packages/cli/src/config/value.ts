import { isDeepStrictEqual } from 'node:util';
import { isScalar, parseDocument } from 'yaml';
import { UsageError } from '../errors/kinds.ts';
import { isText, type Path } from './keys.ts';

/**
 * Parses the value of a key as it is typed: a text for a field that has one, else as YAML reads it, such as `0.2`,
 * `true` or `[a, b]`.
 * @throws UsageError
 */
export function parseValue(text: string, path: Path): unknown {
  if (isText(path)) return text;
  if (/^\+?(?:Infinity|inf)$/.test(text)) return Number.POSITIVE_INFINITY;
  const document = parseDocument(text, { prettyErrors: false, stringKeys: true });
  const [fault] = [...document.errors, ...document.warnings];
  const refuse = (why: string) =>
    new UsageError(`cannot read the value of ${path.join('.')}: ${why}`, {
      hint: 'it is read as YAML; for a text that begins like something else, write it in double quotes inside of single ones',
    });
  if (fault !== undefined) throw refuse(fault.message);
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null)) throw refuse('it is empty');
  try {
    return document.toJS();
  } catch (error) {
    // An alias without its anchor.
    throw refuse((error as Error).message);
  }
}

/** The text of a value, from which `parseValue` makes the same value. */
export function valueText(value: unknown, path: Path): string {
  if (value === Number.POSITIVE_INFINITY) return 'Infinity';
  if (typeof value !== 'string') return JSON.stringify(value);
  const isSame = isText(path) || reads(value, path);
  return isSame ? value : JSON.stringify(value);
}

function reads(text: string, path: Path): boolean {
  try {
    return isDeepStrictEqual(parseValue(text, path), text);
  } catch {
    return false;
  }
}

/** A value as JSON has it, which has no infinity. */
export function valueJson(value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? 'Infinity' : value;
}
