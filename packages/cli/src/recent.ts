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

/** What a user did in one home: the sessions that command lines named, which `@{-1}` refers to, and the last look. */
export interface Recent {
  /** Ids, the last used first, each once. */
  read(): readonly string[];
  /** Puts a session first. */
  add(id: string): void;
  /** The last line of the lineage when the user last looked; undefined when that is not known. */
  seen(): number | undefined;
  /** Records that the user looks now. */
  look(line: number): void;
}

/** Size from which the file is written again with its last lines alone. */
const sizeMax = 64 * 1024;
const linesKept = 200;

/** The use of a session, or a look at a home. */
interface Line {
  readonly home: string;
  readonly session?: string;
  readonly seen?: number;
}

/**
 * Opens the record of a home: lines for all homes of the user in one file outside of them, since a home can be read-only
 * or come from others. It is no truth: where it cannot be read or written, there are no recent sessions.
 */
export function openRecent({ dir }: { readonly dir: string }, { env }: Pick<Io, 'env'>): Recent {
  const directory = recentDirectory(env);
  if (directory === undefined)
    return { read: () => [], add: () => {}, seen: () => undefined, look: () => {} };
  const file = join(directory, 'recent.jsonl');
  const lines = () => linesOf(file).filter(({ home }) => home === dir);
  const read = () => [...new Set(lines().flatMap(({ session }) => session ?? []))];
  const seen = () => lines().find((line) => line.seen !== undefined)?.seen;
  const append = (line: Line) => {
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      appendFileSync(file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
      if (statSync(file).size > sizeMax) shorten(file);
    } catch {
      // A user without a home directory, or a read-only one.
    }
  };
  return {
    read,
    add: (id) => {
      if (read()[0] !== id) append({ home: dir, session: id });
    },
    seen,
    look: (line) => {
      if (seen() !== line) append({ home: dir, seen: line });
    },
  };
}

/** `$XDG_STATE_HOME/tape`, else `~/.local/state/tape`. A home directory that does not exist is not created. */
function recentDirectory(env: Io['env']): string | undefined {
  const given = env.XDG_STATE_HOME ?? '';
  if (isAbsolute(given)) return join(given, 'tape');
  const user = env.HOME === undefined || env.HOME === '' ? homedir() : env.HOME;
  return existsSync(user) ? join(user, '.local', 'state', 'tape') : undefined;
}

/** The lines of the file, the last one first. Skips other lines. */
function linesOf(file: string): readonly Line[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return [];
  }
  const lines = text.split('\n').flatMap((line): readonly Line[] => {
    try {
      const { home, session, seen } = JSON.parse(line) as Line;
      if (typeof home !== 'string') return [];
      return [
        { home, ...(typeof session === 'string' && { session }), ...(typeof seen === 'number' && { seen }) },
      ];
    } catch {
      return [];
    }
  });
  return lines.reverse();
}

function shorten(file: string): void {
  const kept = linesOf(file).slice(0, linesKept).reverse();
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, kept.map((line) => `${JSON.stringify(line)}\n`).join(''), { mode: 0o600 });
  renameSync(draft, file);
}
