import type { Io } from './io.ts';
import { openStateFile } from './state-file.ts';

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

/** The use of a session, or a look at a home. */
interface Line {
  readonly home: string;
  readonly session?: string;
  readonly seen?: number;
}

/** Opens the record of a home: its lines are among those of all homes of the user. */
export function openRecent({ dir }: { readonly dir: string }, io: Pick<Io, 'env'>): Recent {
  const file = openStateFile('recent.jsonl', io, { parse, bytesMax: 64 * 1024, linesKept: 200 });
  const lines = () => file.read().filter(({ home }) => home === dir);
  const read = () => [...new Set(lines().flatMap(({ session }) => session ?? []))];
  const seen = () => lines().find((line) => line.seen !== undefined)?.seen;
  return {
    read,
    add: (id) => {
      if (read()[0] !== id) file.append({ home: dir, session: id });
    },
    seen,
    look: (line) => {
      if (seen() !== line) file.append({ home: dir, seen: line });
    },
  };
}

function parse({ home, session, seen }: Readonly<Record<string, unknown>>): Line | undefined {
  if (typeof home !== 'string') return undefined;
  return { home, ...(typeof session === 'string' && { session }), ...(typeof seen === 'number' && { seen }) };
}
