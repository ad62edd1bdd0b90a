import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { Io } from './io.ts';

/** Lines of JSON about what a user did, in a file of the user's own. */
export interface StateFile<Line> {
  /** The lines, the last one first. */
  read(): readonly Line[];
  append(line: Line): void;
}

interface Options<Line> {
  /** Reads a line; undefined for one to skip. */
  readonly parse: (value: Readonly<Record<string, unknown>>) => Line | undefined;
  /** Size from which the file is written again with its last lines alone, and the number of these. */
  readonly bytesMax: number;
  readonly linesKept: number;
}

/**
 * Opens a file of lines outside of all homes, since a home can be read-only or come from others. It is no truth: where it
 * cannot be read or written, it has no lines.
 */
export function openStateFile<Line extends object>(
  name: string,
  { env }: Pick<Io, 'env'>,
  options: Options<Line>,
): StateFile<Line> {
  const directory = stateDirectory(env);
  if (directory === undefined) return { read: () => [], append: () => {} };
  const file = join(directory, name);
  return {
    read: () => linesOf(file, options),
    append: (line) => {
      try {
        mkdirSync(directory, { recursive: true, mode: 0o700 });
        appendFileSync(file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
        if (statSync(file).size > options.bytesMax) shorten(file, options);
      } catch {
        // A user without a home directory, or a read-only one.
      }
    },
  };
}

/** `$XDG_STATE_HOME/tape`, else `~/.local/state/tape`. A home directory that does not exist is not created. */
function stateDirectory(env: Io['env']): string | undefined {
  const given = env.XDG_STATE_HOME ?? '';
  if (isAbsolute(given)) return join(given, 'tape');
  const user = env.HOME === undefined || env.HOME === '' ? homedir() : env.HOME;
  return existsSync(user) ? join(user, '.local', 'state', 'tape') : undefined;
}

/** The lines of a file, the last one first. Skips other lines. */
function linesOf<Line>(file: string, { parse }: Pick<Options<Line>, 'parse'>): readonly Line[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return [];
  }
  const lines = text.split('\n').flatMap((line): readonly Line[] => {
    try {
      return [parse(JSON.parse(line))].filter((one) => one !== undefined);
    } catch {
      return [];
    }
  });
  return lines.reverse();
}

function shorten<Line>(file: string, options: Options<Line>): void {
  const { bytesMax, linesKept } = options;
  const kept: string[] = [];
  let bytes = 0;
  for (const line of linesOf(file, options).slice(0, linesKept)) {
    const text = `${JSON.stringify(line)}\n`;
    bytes += Buffer.byteLength(text);
    // Room for as much again: otherwise each further line would write the file anew.
    if (bytes > bytesMax / 2) break;
    kept.push(text);
  }
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, kept.reverse().join(''), { mode: 0o600 });
  renameSync(draft, file);
}
