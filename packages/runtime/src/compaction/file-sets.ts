import type { Entry, JsonObject, Part } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { pairClientCalls } from './client-calls.ts';

/** Files that calls read, and files that they changed. A changed file is not in `read`. */
export interface FileSets {
  readonly read: readonly string[];
  readonly modified: readonly string[];
}

/** What tools with well-known names do with the file that their argument names. */
const effects: Readonly<Record<string, 'read' | 'modified'>> = {
  read: 'read',
  read_file: 'read',
  write: 'modified',
  write_file: 'modified',
  edit: 'modified',
  edit_file: 'modified',
};

/**
 * The files that calls read and changed, added to those of an earlier summary: as the tools declare
 * (`meta.paths`), otherwise by well-known tool names. Failed calls do not count. Pure.
 */
export function fileSets(entries: readonly Entry[], before: FileSets = { read: [], modified: [] }): FileSets {
  const { answered } = pairClientCalls(entries);
  const read = new Set(before.read);
  const modified = new Set(before.modified);
  for (const entry of entries) {
    const files = filesOf(entry, answered.get(entry)?.part);
    for (const path of files.read) read.add(path);
    for (const path of files.modified) modified.add(path);
  }
  return { read: [...read].filter((path) => !modified.has(path)).sort(), modified: [...modified].sort() };
}

const noFiles: FileSets = { read: [], modified: [] };

/** The files that one call read and changed. Empty unless the entry is a result that succeeded. */
export function filesOf({ kind, payload, meta }: Entry, call: Part | undefined): FileSets {
  if (kind !== 'tool-result' || !isObject(payload) || hasFailed(payload)) return noFiles;
  if (!isObject(meta.paths)) return namedFile(call) ?? noFiles;
  return { read: texts(meta.paths.read), modified: texts(meta.paths.write) };
}

function namedFile(call: Part | undefined): FileSets | undefined {
  if (call === undefined || !isObject(call.input)) return undefined;
  const effect = Object.hasOwn(effects, String(call.toolName)) ? effects[String(call.toolName)] : undefined;
  const path = call.input.path ?? call.input.file_path;
  if (effect === undefined || typeof path !== 'string') return undefined;
  return effect === 'read' ? { read: [path], modified: [] } : { read: [], modified: [path] };
}

function hasFailed({ output }: JsonObject): boolean {
  const type = isObject(output) ? String(output.type) : '';
  return type.startsWith('error') || type === 'execution-denied';
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((path) => typeof path === 'string') : [];
}

/**
 * The file sets as tags for the end of a summary; '' for empty sets. Quotes a path that could be taken for a
 * tag.
 */
export function fileTags({ read, modified }: FileSets): string {
  return [tag('read-files', read), tag('modified-files', modified)]
    .filter((text) => text !== '')
    .join('\n\n');
}

function tag(name: string, paths: readonly string[]): string {
  if (paths.length === 0) return '';
  const lines = paths.map((path) =>
    /[<>\p{Cc}]/u.test(path) ? JSON.stringify(path).replaceAll('<', '\\u003c') : path,
  );
  return `<${name}>\n${lines.join('\n')}\n</${name}>`;
}

/** Removes the tags at the end of a summary; the next summary writes its own. */
export function withoutFileTags(summary: string): string {
  let text = summary;
  for (;;) {
    const shown = text.trimEnd();
    const from = lastTag(shown);
    if (from === undefined) return text;
    text = shown.slice(0, from).trimEnd();
  }
}

/**
 * Where the tag at the end of a text begins. Uses no regular expression: the text comes from a model, and an
 * expression could backtrack at each blank.
 */
function lastTag(text: string): number | undefined {
  for (const name of ['read-files', 'modified-files']) {
    const end = `</${name}>`;
    if (!text.endsWith(`\n${end}`)) continue;
    const from = text.lastIndexOf('<', text.length - end.length - 1);
    if (from >= 0 && text.startsWith(`<${name}>\n`, from)) return from;
  }
  return undefined;
}

/** The file sets in the state of a compaction. Ignores values of the wrong type: a tape is data. */
export function fileSetsIn(state: JsonObject): FileSets {
  return { read: texts(state.read_files), modified: texts(state.modified_files) };
}
