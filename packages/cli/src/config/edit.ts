import { isDeepStrictEqual } from 'node:util';
import { type Document, isCollection, isMap, isNode, isScalar, parseDocument, type YAMLMap } from 'yaml';

/** Why a text cannot be changed. */
export class CannotEdit extends Error {}

/** The names of the mappings around a value, and its own. */
type Path = readonly string[];

/**
 * A YAML text with another value at a path, or without one there. Only the lines of the outermost field change, where
 * that is possible; comments and the order stay in any case. Pure.
 * @returns the new text, and the value that was there
 * @throws CannotEdit
 */
export function edit(
  text: string,
  path: Path,
  value: unknown,
): { readonly text: string; readonly was: unknown } {
  const isCrlf = text.includes('\r\n') && !/(?:^|[^\r])\n/.test(text);
  const source = isCrlf ? text.replaceAll('\r\n', '\n') : text;
  const data = dataOf(parse(source));
  const was = valueAt(data, path);
  if (value === undefined && was === undefined) return { text, was };
  const wanted = withValue(data, path, value);
  const found = [editedField, editedWhole]
    .map((act) => attempt(() => act(source, path, value)))
    .find(
      (result) =>
        result !== undefined &&
        isDeepStrictEqual(
          attempt(() => dataOf(parse(result))),
          wanted,
        ),
    );
  if (found === undefined)
    throw new CannotEdit('it has anchors, or another form that only an editor can change');
  return { text: isCrlf ? found.replaceAll('\n', '\r\n') : found, was };
}

function valueAt(data: unknown, path: Path): unknown {
  return path.reduce(
    (at, name) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? Reflect.get(at, name) : undefined,
    data,
  );
}

function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

function parse(text: string): Document {
  const document = parseDocument(text, { prettyErrors: false, stringKeys: true });
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) throw new CannotEdit(fault.message);
  return document;
}

function dataOf(document: Document): unknown {
  return (document.toJS() as unknown) ?? {};
}

/** The data with another value at a path; a mapping that has nothing else goes with the value. */
function withValue(data: unknown, [name, ...rest]: Path, value: unknown): unknown {
  if (name === undefined) return value;
  const isMapping = typeof data === 'object' && data !== null && !Array.isArray(data);
  if (!isMapping && data !== undefined && data !== null && value !== undefined)
    throw new CannotEdit('the field around it has a value of another form');
  const fields = isMapping ? Object.entries(data) : [];
  const at = fields.findIndex(([field]) => field === name);
  const inner = withValue(fields[at]?.[1], rest, value);
  const isGone = inner === undefined || (value === undefined && isEmpty(inner));
  const changed: [string, unknown][] = isGone ? [] : [[name, inner]];
  return Object.fromEntries(at === -1 ? [...fields, ...changed] : fields.toSpliced(at, 1, ...changed));
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** Changes only the lines of the outermost field. */
function editedField(text: string, path: Path, value: unknown): string {
  const { contents } = parse(text);
  if (contents !== null && !(isMap(contents) && contents.flow !== true))
    return editedWhole(text, path, value);
  const lines = text.split('\n');
  const key = contents?.items.map((pair) => pair.key).find((one) => isScalar(one) && one.value === path[0]);
  if (!isScalar(key)) {
    const isWhole = text === '' || text.endsWith('\n');
    return `${text}${isWhole ? '' : '\n'}${editedWhole('', path, value)}`;
  }
  const first = text.slice(0, key.range?.[0]).split('\n').length - 1;
  // A value is indented, or a list; what follows belongs to the next field.
  const next = lines.findIndex((line, i) => i > first && /^(?![-#\s])./.test(line));
  const last = lines.findLastIndex((line, i) => (next === -1 || i < next) && /^(?:[ \t]+\S|- )/.test(line));
  const own = lines.slice(first, Math.max(first, last) + 1);
  const changed = editedWhole(`${own.join('\n')}\n`, path, value);
  return lines
    .toSpliced(first, own.length, ...(changed === '' ? [] : changed.trimEnd().split('\n')))
    .join('\n');
}

/** Changes the text as a whole, which also gives each line the usual form. */
function editedWhole(text: string, path: Path, value: unknown): string {
  const document = parse(text);
  if (isScalar(document.contents)) document.contents = null;
  if (value === undefined) remove(document, path);
  else put(document, path, value);
  const indent = /^[^\s#][^\n]*\n( +)\S/m.exec(text)?.[1]?.length ?? 2;
  if (document.contents === null || isEmptyMap(document.contents)) {
    document.contents = null;
    return document.toString().replace(/^null\n/m, '');
  }
  return document.toString({
    lineWidth: 0,
    indent: Math.min(8, indent),
    indentSeq: !/^( *)[^\s#][^\n]*:(?: +#[^\n]*)?\n\1- /m.test(text),
  });
}

function put(document: Document, path: Path, value: unknown): void {
  for (let depth = 1; depth < path.length; depth += 1) {
    const outer = path.slice(0, depth);
    const found = document.getIn(outer, true);
    // A field without a value becomes a mapping.
    if (isNode(found) && !isCollection(found)) document.setIn(outer, document.createNode({}));
  }
  const before = document.getIn(path, true);
  const node = document.createNode(value);
  document.setIn(path, node);
  if (!isNode(before) || typeof before.comment !== 'string') return;
  if (isScalar(node) && !String(value).includes('\n')) node.comment = before.comment;
  else commentBefore(document, path, before.comment);
}

/** Puts a comment, which cannot stand behind a value of several lines, before its field. */
function commentBefore(document: Document, path: Path, comment: string): void {
  const map = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  const key = isMap(map)
    ? map.items.find((pair) => isScalar(pair.key) && pair.key.value === path.at(-1))?.key
    : undefined;
  if (!isScalar(key)) return;
  key.commentBefore = typeof key.commentBefore === 'string' ? `${key.commentBefore}\n${comment}` : comment;
}

/** Removes a value, and each mapping around it that has no other one. */
function remove(document: Document, path: Path): void {
  document.deleteIn(path);
  const outer = path.slice(0, -1);
  if (outer.length > 0 && isEmptyMap(document.getIn(outer))) remove(document, outer);
}

function isEmptyMap(node: unknown): node is YAMLMap {
  return isMap(node) && node.items.length === 0;
}
