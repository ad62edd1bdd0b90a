import type { JsonObject } from '@tapedeck/tape';
import type { JsonLine } from '../lines/json-lines.ts';
import type { TranscriptTool } from './format.ts';

/** A line that was taken, though something in it is wrong. */
export interface IrregularLine {
  readonly line: number;
  /** Bytes of the file before the line. */
  readonly offset: number;
  /** What is wrong, and what became of it. */
  readonly why: string;
}

/** What tells the records of a format from those of others. */
export type RecordForm = Pick<TranscriptTool, 'name' | 'file' | 'hasRecord' | 'faultIn'>;

const isGlued = 'several records without a newline between them, each of which was taken';

/** The most places that are kept. */
const linesMax = 100;

/** What is irregular in the lines of one file: several records on one, records of another format, and what its own say wrongly. */
export class Irregularities {
  readonly #own: RecordForm;
  readonly #others: readonly RecordForm[];
  readonly #lines: IrregularLine[] = [];
  #count = 0;
  /** The line of the last record, and the last one that was named as one with several. */
  #line = 0;
  #glued = 0;

  constructor(own: RecordForm, others: readonly RecordForm[]) {
    this.#own = own;
    this.#others = others.filter(({ name }) => name !== own.name);
  }

  get count(): number {
    return this.#count;
  }

  /** The first of them. */
  get lines(): readonly IrregularLine[] {
    return this.#lines;
  }

  /** Looks at a record, and returns what is wrong with it: nearly always nothing. */
  look({ line, offset, value }: Pick<JsonLine, 'line' | 'offset' | 'value'>): IrregularLine | undefined {
    const glued = this.#isFirstGlued(line) ? this.#add({ line, offset, why: isGlued }) : undefined;
    const why = this.#own.faultIn?.(value) ?? this.#foreign(value);
    return why === undefined ? glued : this.#add({ line, offset, why });
  }

  #add(found: IrregularLine): IrregularLine {
    this.#count += 1;
    if (this.#lines.length < linesMax) this.#lines.push(found);
    return found;
  }

  /** Whether a record is the second one of its line. */
  #isFirstGlued(line: number): boolean {
    const isFirst = line === this.#line && line !== this.#glued;
    this.#line = line;
    if (isFirst) this.#glued = line;
    return isFirst;
  }

  #foreign(record: JsonObject): string | undefined {
    if (this.#own.hasRecord?.(record) !== false) return undefined;
    const other = this.#others.find(({ hasRecord }) => hasRecord?.(record) === true);
    return other && `a record of ${other.file}, kept beside the conversation`;
  }
}
