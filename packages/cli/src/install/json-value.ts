import { isObject } from '@tapedeck/tape/internal';
import {
  applyEdits,
  type Edit,
  findNodeAtLocation,
  type JSONPath,
  modify,
  type ParseError,
  parse,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import { CannotChange } from './cannot-change.ts';

/**
 * The text of a JSON file with a value at a path, or without what is there where the value is undefined. A number one behind
 * the last element of a list adds one. Everything else stays as it is, also comments, which such files may have. What an
 * object or a list loses last leaves it empty.
 * @throws CannotChange
 */
export function withJsonValue(text: string, path: JSONPath, value: unknown): string {
  const before = text.trim() === '' ? '{}' : text;
  const document = parsed(before);
  if (!isObject(document)) throw new CannotChange('it is no JSON object');
  const { depth, has, isNext } = found(document, path);
  if (value === undefined && !has) return text;
  if (value === undefined) return applyEdits(before, [removal(before, path)]);
  const unit = /^([ \t]+)\S/m.exec(before)?.[1] ?? '  ';
  const end = before.includes('\r\n') ? '\r\n' : '\n';
  const edits = modify(before, path, value, { isArrayInsertion: isNext });
  const after = applyEdits(
    before,
    edits.map((edit) => insertion(edit, { unit, depth, end })),
  );
  return before === text ? after : `${after}${end}`;
}

/**
 * How many objects and lists a path goes through that are there, whether it leads to something, and whether to the place
 * behind a list.
 * @throws CannotChange where it would go through something else
 */
function found(document: unknown, path: JSONPath): { depth: number; has: boolean; isNext: boolean } {
  let at: unknown = document;
  for (const [depth, step] of path.entries()) {
    const isList = typeof step === 'number';
    if (isList ? !Array.isArray(at) : !isObject(at))
      throw new CannotChange(
        `its field '${path.slice(0, depth).join('.')}' is no ${isList ? 'list' : 'object'}`,
      );
    const inside = at as Readonly<Record<string, unknown>>;
    if (!Object.hasOwn(inside, step))
      return { depth: depth + 1, has: false, isNext: isList && step === (at as unknown[]).length };
    at = inside[step];
  }
  return { depth: path.length, has: true, isNext: false };
}

interface Layout {
  readonly unit: string;
  readonly depth: number;
  readonly end: string;
}

/** What is inserted, on lines of its own: what stands around it keeps its form. */
function insertion(edit: Edit, { unit, depth, end }: Layout): Edit {
  const around = unit.repeat(depth - 1);
  const lines = (text: string) => ({ ...edit, content: text.replaceAll('\n', `${end}${around}`) });
  // A value takes the place of another one.
  if (edit.length > 0)
    return lines(JSON.stringify(JSON.parse(edit.content), null, unit).replaceAll('\n', `\n${unit}`));
  const follows = edit.content.startsWith(',');
  const body = follows ? edit.content.slice(1) : edit.content;
  const whole = /^"(?:[^"\\]|\\.)*":/.test(body) ? `{${body}}` : `[${body}]`;
  const inside = JSON.stringify(JSON.parse(whole), null, unit).split('\n').slice(1, -1);
  const text = inside.map((line) => `\n${line}`).join('');
  return lines(follows ? `,${text}` : `${text}\n`);
}

/** What is at a path goes with the comma before it, the first of several with the one behind it; the last one leaves nothing. */
function removal(text: string, path: JSONPath): Edit {
  const root = parseTree(text, [], { allowTrailingComma: true });
  const value = root && findNodeAtLocation(root, path);
  const node = typeof path.at(-1) === 'string' ? value?.parent : value;
  const siblings = node?.parent?.children ?? [];
  if (node?.parent === undefined) throw new CannotChange('it has a field twice');
  const at = siblings.indexOf(node);
  const [before, after] = [siblings[at - 1], siblings[at + 1]];
  const end = node.offset + node.length;
  const cut = (from: number, to: number): Edit => ({ offset: from, length: to - from, content: '' });
  if (before !== undefined) return cut(before.offset + before.length, end);
  if (after !== undefined) return cut(node.offset, after.offset);
  const [open, close] = [node.parent.offset + 1, node.parent.offset + node.parent.length - 1];
  const around = text.slice(open, node.offset) + text.slice(end, close);
  // Comments stay.
  return /^[\s,]*$/.test(around) ? cut(open, close) : cut(node.offset, end);
}

function parsed(text: string): unknown {
  const errors: ParseError[] = [];
  const document: unknown = parse(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error === undefined) return document;
  const line = text.slice(0, error.offset).split('\n').length;
  throw new CannotChange(`line ${line} is no JSON (${printParseErrorCode(error.error)})`);
}
