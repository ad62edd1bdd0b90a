import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { type JsonLine, readJsonLines } from '../json-lines.ts';
import type { AgentSource } from './agents.ts';
import type { SavedOutput } from './outputs.ts';
import type { ClaudeCodeSource } from './plan-of.ts';

/** The files of one session: `ID.jsonl`, and the folder `ID` beside it. */
export interface ClaudeCodeFiles {
  /** The session, by the names of its files. */
  readonly name: string;
  /** Absent when the folder alone is left, or came first. */
  readonly main?: string;
  readonly agents: readonly AgentFile[];
  readonly journals: readonly { readonly workflow: string; readonly path: string }[];
  /** The files of outputs that were too large for the transcript. */
  readonly outputs?: readonly string[];
}

/** The file of one subagent. */
export interface AgentFile {
  readonly id: string;
  readonly path: string;
  /** What the tool wrote of it beside its records. */
  readonly meta?: string;
  /** The run of a workflow that started it. */
  readonly workflow?: string;
}

/** Folders below that of a session that are searched, one in the other; real ones have three. */
const depthMax = 8;

/** Finds the files of a session by any of them: its main file, or one of a subagent. Follows no link to a folder. */
export function claudeCodeFiles(path: string): ClaudeCodeFiles {
  const parts = path.split(sep);
  const at = parts.lastIndexOf('subagents');
  const folder = at > 0 ? parts.slice(0, at).join(sep) : path.replace(/\.jsonl$/, '');
  const main = at > 0 ? `${folder}.jsonl` : path;
  const files = filesBelow(join(folder, 'subagents'), depthMax);
  const agents = files.flatMap((file): AgentFile[] => {
    const id = /^agent-(.+)\.jsonl$/.exec(basename(file))?.[1];
    if (id === undefined) return [];
    const meta = file.replace(/\.jsonl$/, '.meta.json');
    const workflow = workflowOf(file);
    return [
      {
        id,
        path: file,
        ...(files.includes(meta) && { meta }),
        ...(workflow !== undefined && { workflow }),
      },
    ];
  });
  const journals = files.flatMap((file) => {
    const workflow = basename(file) === 'journal.jsonl' ? workflowOf(file) : undefined;
    return workflow === undefined ? [] : [{ workflow, path: file }];
  });
  const outputs = filesBelow(join(folder, 'tool-results'), 1);
  return {
    name: basename(folder),
    ...((at <= 0 || existsSync(main)) && { main }),
    agents,
    journals,
    outputs,
  };
}

/** The files of a folder and of those in it, in order of their names. */
function filesBelow(folder: string, depth: number): readonly string[] {
  if (depth === 0 || !existsSync(folder)) return [];
  const found = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return found.flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(path, depth - 1);
    return entry.isFile() ? [path] : [];
  });
}

/** The run of a workflow in whose folder a file lies: `subagents/workflows/RUN/…`. */
function workflowOf(file: string): string | undefined {
  const folder = dirname(file);
  return basename(dirname(folder)) === 'workflows' ? basename(folder) : undefined;
}

/**
 * Reads the files of a session. A file without a whole record is read as an empty one, since it may be about to be written.
 * @throws ImportError: IMPORT_CANNOT_READ, IMPORT_BAD_JSON
 */
export function readClaudeCodeFiles({
  name,
  main,
  agents,
  journals,
  outputs = [],
}: ClaudeCodeFiles): ClaudeCodeSource {
  return {
    name,
    lines: main === undefined ? [] : linesOf(main),
    agents: agents.map(({ id, path, meta, workflow }): AgentSource => {
      const said = meta === undefined ? undefined : objectIn(meta);
      return {
        id,
        lines: linesOf(path),
        ...(said !== undefined && { meta: said }),
        ...(workflow !== undefined && { workflow }),
      };
    }),
    beside: journals.flatMap(({ workflow, path }) =>
      linesOf(path).map(({ value }, i) => ({ key: `cc:journal:${workflow}:${i + 1}`, value })),
    ),
    outputs: outputs.flatMap(outputIn),
  };
}

/** A saved output; nothing of one that cannot be read, or is gone. */
function outputIn(path: string): readonly SavedOutput[] {
  try {
    return [{ name: basename(path), bytes: readFileSync(path) }];
  } catch {
    return [];
  }
}

function linesOf(path: string): readonly JsonLine[] {
  return readJsonLines(path, { growing: true }).records;
}

/** The object in a small file; undefined while it is being written. */
function objectIn(path: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
