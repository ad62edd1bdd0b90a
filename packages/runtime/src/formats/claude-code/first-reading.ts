import type { JsonLine, RecordList } from '../../lines/json-lines.ts';
import { FactsReading, type FileFacts } from './file-facts.ts';
import { type CodeRecord, RecordReading } from './records.ts';

/**
 * What is held of the records of a main file, each of which is added while its line is read: the line of a large file is then
 * read again for its content alone.
 */
export class FirstReading {
  readonly #facts = new FactsReading();
  readonly #records = new RecordReading();

  add(line: JsonLine): void {
    this.#facts.add(line);
    this.#records.add(line);
  }

  facts(): FileFacts {
    return this.#facts.facts();
  }

  /** The records, none of which is of a subagent, and whose `lines` were added. */
  end(lines: RecordList): CodeRecord[] {
    return this.#records.end(lines);
  }
}

/** Reads lines that are there. */
export function firstReadingOf(lines: RecordList): FirstReading {
  const reading = new FirstReading();
  for (const line of lines) reading.add(line);
  return reading;
}
