import { closeSync } from 'node:fs';
import type { LineageLine } from '@tapedeck/tape/store';
import { lineHash } from './chain.ts';
import { type Folding, foldLine, startFold } from './fold.ts';
import { type Line, linesOf, type OpenFile, openForReading, unreadable } from './lines.ts';
import { parseRecord, type SkipReason } from './record.ts';

/** Number of skipped lines by reason. `torn`: the unfinished last line, so 0 or 1. */
export type Skips = Readonly<Record<SkipReason | 'torn', number>>;

/**
 * The result of a read: the fold of all lines, the number of new records, and the skips of the whole file.
 */
export interface Read {
  readonly folding: Folding;
  readonly added: number;
  readonly skips: Skips;
}

interface LastLine {
  readonly dev: number;
  readonly ino: number;
  /** First byte and hash of the last complete line that was read, to detect a change of the file. */
  readonly start: number;
  readonly hash: string;
}

/** No skipped lines. */
export const noSkips: Skips = { torn: 0, malformed: 0, unknownType: 0, tooLong: 0 };

/** Follows a graph file as it grows: each read adds the lines appended since the last one. */
export class GraphSource {
  readonly #path: string;
  #mark: LastLine | undefined;
  #skips: Skips = noSkips;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Adds the lines after the last read to the given fold. When the file was replaced, or the last line read
   * has moved or changed, reads the whole file into a new fold. A missing file reads as an empty one.
   * @throws GRAPH_UNREADABLE
   */
  read(folding: Folding): Read {
    const mark = this.#mark;
    this.#mark = undefined; // a failed read leaves an incomplete fold, so the next read starts again
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

/** The lines after the marked one; undefined when the file was replaced, or the line has moved or changed. */
function linesAfter(mark: LastLine, file: OpenFile): Iterable<Line> | undefined {
  if (mark.dev !== file.dev || mark.ino !== file.ino) return undefined;
  const lines = linesOf(file.fd, mark.start);
  const marked = lines.next().value;
  return marked !== undefined && mark.hash === digest(marked) ? lines : undefined;
}

function markOf({ dev, ino }: OpenFile, line: Line): LastLine {
  return { dev, ino, start: line.start, hash: digest(line) };
}

/** The record of a line, or the reason to skip it. */
function read(line: Line): LineageLine | keyof Skips {
  if (line.kind === 'torn') return 'torn';
  if (line.kind === 'bad') return line.reason === 'tooLong' ? 'tooLong' : 'malformed';
  const parsed = parseRecord(line.text);
  return parsed.kind === 'record' ? parsed.record : parsed.reason;
}

/** Identifies a line: by its hash, or by its length when it has no text. */
function digest(line: Line): string {
  return line.kind === 'line' ? lineHash(line.text) : `${line.kind} ${line.end - line.start}`;
}
