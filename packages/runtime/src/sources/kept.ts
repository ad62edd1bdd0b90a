import { isObject } from '@tapedeck/tape/internal';
import { cannotRead, linesIn, reasonOf } from '../lines/index.ts';
import { sourceIn, version } from './row.ts';
import type { Source } from './source.ts';
import type { WrittenHead } from './written-head.ts';

/** What the file of a table says. */
export interface Kept {
  readonly byPath: Map<string, Source>;
  /** Since when conversations are not to be taken. */
  readonly forgotten: Map<string, number>;
  /** How many lines it has, those that a later one replaced among them. */
  readonly lines: number;
  /** When an import looked for transcripts last. */
  readonly searched: number | undefined;
  /** The working directories that a `.tapeignore` leaves out, each with the directory of that. */
  readonly ignored: ReadonlyMap<string, string>;
  /** Whether a line says more of a conversation that is not to be taken than that. */
  readonly isLate: boolean;
  /** The newest of those that lines name. */
  readonly head: WrittenHead | undefined;
}

/**
 * Reads the file of a table. One that is not there says nothing, and a line that cannot be read is passed over.
 * @throws IMPORT_CANNOT_READ
 */
export function keptIn(file: string): Kept {
  let byPath = new Map<string, Source>();
  const forgotten = new Map<string, number>();
  const ignored = new Map<string, string>();
  let searched: number | undefined;
  let head: WrittenHead | undefined;
  let lines = 0;
  for (const line of readLines(file)) {
    if (line === '') continue;
    lines += 1;
    const value = parsed(line);
    if (Array.isArray(value)) {
      const source = sourceIn(value);
      if (source === undefined) continue;
      noteForgotten(source, forgotten);
      const { size } = byPath;
      byPath.set(source.path, source);
      if (byPath.size === size) {
        // A later line of the path: what was read last is at the end.
        byPath.delete(source.path);
        byPath.set(source.path, source);
      }
    } else if (isObject(value) && value.v === version) {
      if (typeof value.searched === 'number') searched = value.searched;
      if (typeof value.ignored === 'string') {
        if (typeof value.by === 'string') ignored.set(value.ignored, value.by);
        else ignored.delete(value.ignored);
      }
      if (isHead(value.head)) head = value.head;
      if (value.dropped === true) {
        byPath = forgottenIn(byPath);
        head = undefined;
      }
      const gone = typeof value.removed === 'string' ? byPath.get(value.removed) : undefined;
      if (gone !== undefined && !forgotten.has(conversationOf(gone))) byPath.delete(gone.path);
    }
  }
  // Whichever line came last: an import can have been under way when its source was forgotten.
  let isLate = false;
  for (const [path, source] of forgotten.size > 0 ? byPath : []) {
    const said = asForgotten(source, forgotten);
    isLate ||= said !== source && source.forgottenAt === undefined;
    byPath.set(path, said);
  }
  return { byPath, forgotten, lines, searched, ignored, isLate, head };
}

/** The sources that stay when all that was read is dropped: those that were forgotten. Pure. */
export function forgottenIn(byPath: ReadonlyMap<string, Source>): Map<string, Source> {
  return new Map([...byPath].filter(([, { forgottenAt }]) => forgottenAt !== undefined));
}

/** What a conversation of a tool is known by. Pure. */
export function conversationOf({ tool, main }: Pick<Source, 'tool' | 'main'>): string {
  return `${tool} ${main}`;
}

/** Notes the conversation of a source as one that is not to be taken, if the source says so. */
export function noteForgotten(source: Source, forgotten: Map<string, number>): void {
  if (source.forgottenAt !== undefined) forgotten.set(conversationOf(source), source.forgottenAt);
}

/**
 * A source as one that is not to be taken, if its conversation is not: an import that was under way when that was forgotten can
 * write what it read of it behind that. Pure.
 */
export function asForgotten(source: Source, forgotten: ReadonlyMap<string, number>): Source {
  const forgottenAt = source.forgottenAt ?? forgotten.get(conversationOf(source));
  if (forgottenAt === undefined) return source;
  const { project: _, first: __, ...rest } = source;
  return { ...rest, forgottenAt };
}

function isHead(value: unknown): value is WrittenHead {
  if (!isObject(value)) return false;
  return typeof value.id === 'string' && Number.isSafeInteger(value.seq) && typeof value.hash === 'string';
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function readLines(file: string): readonly string[] {
  try {
    return linesIn(file);
  } catch (cause) {
    throw cannotRead(file, reasonOf(cause), cause);
  }
}
