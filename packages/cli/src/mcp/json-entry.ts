import { isObject } from '@tapedeck/tape/internal';
import { applyEdits, modify, type ParseError, parse, printParseErrorCode } from 'jsonc-parser';
import type { Entry } from './clients.ts';

/** What is wrong with the text of a file that keeps it from being changed. */
export class CannotChange extends Error {}

/**
 * The text of a JSON file with an entry, or without it where the entry is undefined. Everything else stays as it is, also
 * comments, which such files may have.
 * @throws CannotChange
 */
export function withJsonEntry(
  text: string,
  path: readonly [field: string, name: string],
  entry: Entry | undefined,
): string {
  const before = text.trim() === '' ? '{}' : text;
  const document = parsed(before);
  const [field] = path;
  if (!isObject(document)) throw new CannotChange('it is no JSON object');
  const servers = document[field];
  if (servers !== undefined && !isObject(servers))
    throw new CannotChange(`its field '${field}' is no object`);
  if (entry === undefined && (servers === undefined || !Object.hasOwn(servers, path[1]))) return text;
  const edits = modify(before, [...path], entry, {});
  const unit = /^([ \t]+)\S/m.exec(before)?.[1] ?? '  ';
  const depth = isObject(servers) ? 2 : 1;
  const laidOut =
    entry === undefined
      ? edits
      : edits.map((edit) => ({ ...edit, content: lines(edit.content, { unit, depth }) }));
  const after = applyEdits(before, laidOut);
  return after.endsWith('\n') ? after : `${after}\n`;
}

/** What is inserted, on lines of its own: what stands around it keeps its form. */
function lines(content: string, { unit, depth }: { readonly unit: string; readonly depth: number }): string {
  const follows = content.startsWith(',');
  const body = follows ? content.slice(1) : content;
  const around = unit.repeat(depth - 1);
  // A value takes the place of another one.
  if (!body.startsWith('"'))
    return JSON.stringify(JSON.parse(body), null, unit).replaceAll('\n', `\n${around}${unit}`);
  const fields = JSON.stringify(JSON.parse(`{${body}}`), null, unit)
    .split('\n')
    .slice(1, -1);
  const text = fields.map((line) => `\n${around}${line}`).join('');
  return follows ? `,${text}` : `${text}\n${around}`;
}

function parsed(text: string): unknown {
  const errors: ParseError[] = [];
  const document: unknown = parse(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error === undefined) return document;
  const line = text.slice(0, error.offset).split('\n').length;
  throw new CannotChange(`line ${line} is no JSON (${printParseErrorCode(error.error)})`);
}
