import { closeSync } from 'node:fs';
import type { LineageLine } from '@tapedeck/tape';
import { lineHash } from './chain.ts';
import { type Folding, foldLine, startFold } from './fold.ts';
import { type Line, linesOf, type OpenFile, openForReading, unreadable } from './lines.ts';
import { parseRecord, type SkipReason } from './record.ts';

/** Lines that were read but not used, by reason. `torn`: the one that is not finished, so 0 or 1. */
export type Skips = Readonly<Record<SkipReason | 'torn', number>>;

/** What a read came to: the fold of all lines, how many records were new, and the skips of the whole file. */
export interface Read {
  readonly folding: Folding;
  readonly added: number;
  readonly skips: Skips;
}

interface Mark {
  readonly dev: number;
  readonly ino: number;
  /** The last finished line that was read, to be found in its place again: its first byte and its hash. */
  readonly start: number;
  readonly hash: string;
}

/** No line was passed over. */
export const noSkips: Skips = { torn: 0, malformed: 0, unknownType: 0, tooLong: 0 };

/** Follows a graph file as it grows: each read brings what was appended since the one before. */
export class GraphSource {
  readonly #path: string;
  #mark: Mark | undefined;
  #skips: Skips = noSkips;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Reads on from where the given fold ended, and adds to it. When the file is another one, or the last line
   * that was read is no longer in its place, all of it is folded anew. No file reads as an empty one.
   * @throws GRAPH_UNREADABLE
   */
  read(folding: Folding): Read {
    const mark = this.#mark;
    this.#mark = undefined; // a read that fails leaves a half-told fold: the next one starts anew
    const file = openForReading(this.#path);
    if (file === undefined) return { folding: startFold(), added: 0, skips: noSkips };
    try {
      const rest = mark === undefined ? undefined : linesAfter(mark, file);
      const skips: Record<keyof Skips, number> = { ...(rest === undefined ? noSkips : this.#skips), torn: 0 };
      const into = rest === undefined ? startFold() : folding;
      let added = 0;
      let last: Line | undefined;
      for (const line of rest ?? linesOf(file.fd, 0)) {
        if (line.kind !== 'torn') last = line;
        const parsed = read(line);
        if (typeof parsed === 'string') skips[parsed] += 1;
        else {
          foldLine(into, parsed);
          added += 1;
        }
      }
      this.#skips = skips;
      this.#mark = last === undefined ? rest && mark : markOf(file, last);
      return { folding: into, added, skips };
    } catch (cause) {
      throw unreadable(this.#path, cause);
    } finally {
      closeSync(file.fd);
    }
  }
}

/** The lines after the marked one, if it is where it was in the same file. */
function linesAfter(mark: Mark, file: OpenFile): Iterable<Line> | undefined {
  if (mark.dev !== file.dev || mark.ino !== file.ino) return undefined;
  const lines = linesOf(file.fd, mark.start);
  const marked = lines.next().value;
  return marked !== undefined && mark.hash === digest(marked) ? lines : undefined;
}

function markOf({ dev, ino }: OpenFile, line: Line): Mark {
  return { dev, ino, start: line.start, hash: digest(line) };
}

/** A line's record, or why there is none. */
function read(line: Line): LineageLine | keyof Skips {
  if (line.kind === 'torn') return 'torn';
  if (line.kind === 'bad') return line.reason === 'tooLong' ? 'tooLong' : 'malformed';
  const parsed = parseRecord(line.text);
  return parsed.kind === 'record' ? parsed.record : parsed.reason;
}

/** Knows a line again. A line whose text cannot be had is known by its length. */
function digest(line: Line): string {
  return line.kind === 'line' ? lineHash(line.text) : `${line.kind} ${line.end - line.start}`;
}
