import type { Source } from './source.ts';

/** That of the lines of a table. One of another version is passed over. */
export const version = 3;

/**
 * A source as a list: an import that finds nothing new parses that of each file, of which the names of the fields would take
 * the greater part.
 */
type Row = readonly [
  version: typeof version,
  path: string,
  device: number | string,
  inode: number | string,
  size: number,
  modified: number,
  tool: string,
  session: string,
  /** Null where it is the session. */
  main: string | null,
  role: Source['role'],
  at: number,
  line: number,
  /** Also the size of what was digested. */
  offset: number,
  /** Null for an empty list, which nearly every file has. */
  blocks: readonly string[] | null,
  tail: string,
  project?: string | null,
  first?: string | null,
  rest?: Partial<Source>,
];

/** Pure. */
export function rowOf(source: Source): Row {
  const { path, device, inode, size, modified, tool, session, main, role, at, read, ...others } = source;
  const { project = null, first = null, ...rest } = others;
  const { line, offset, digest } = read;
  return [
    ...([version, path, device, inode, size, modified, tool, session] as const),
    ...([main === session ? null : main, role, at] as const),
    ...([line, offset, digest.blocks.length === 0 ? null : digest.blocks] as const),
    ...([digest.tail, project, first] as const),
    ...(Object.keys(rest).length === 0 ? ([] as const) : ([rest] as const)),
  ];
}

/** Reads a source from the list on a line of the table; undefined for any other list. Pure. */
export function sourceIn(row: readonly unknown[]): Source | undefined {
  if (!isRow(row)) return undefined;
  // By their places: to take a list apart calls its iterator for each value.
  const { 1: path, 2: device, 3: inode, 4: size, 5: modified, 6: tool, 7: session, 8: main, 9: role } = row;
  const { 10: at, 11: line, 12: offset, 13: blocks, 14: tail, 15: project, 16: first, 17: rest } = row;
  const read = { line, offset, digest: { size: offset, blocks: blocks ?? [], tail } };
  const own = main ?? session;
  const source: Mutable<Source> = {
    path,
    device,
    inode,
    size,
    modified,
    tool,
    session,
    main: own,
    role,
    at,
    read,
  };
  if (project != null) source.project = project;
  if (first != null) source.first = first;
  if (rest == null) return source;
  // Earlier versions kept no more of it.
  const lacks = rest.lacks !== undefined && { lacks: Array.isArray(rest.lacks) ? rest.lacks : [] };
  return { ...source, ...rest, ...lacks };
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

function isRow(row: readonly unknown[]): row is Row {
  const { 0: v, 1: path, 4: size, 5: modified, 6: tool, 7: session, 8: main } = row;
  const { 11: line, 12: offset, 13: blocks, 14: tail } = row;
  return (
    v === version &&
    typeof path === 'string' &&
    typeof size === 'number' &&
    typeof modified === 'number' &&
    typeof tool === 'string' &&
    typeof session === 'string' &&
    (main === null || typeof main === 'string') &&
    Number.isSafeInteger(line) &&
    Number.isSafeInteger(offset) &&
    (blocks === null || Array.isArray(blocks)) &&
    typeof tail === 'string'
  );
}
