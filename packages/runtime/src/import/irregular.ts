import type { JsonObject } from '@tapedeck/tape';
import type { TranscriptTool } from './format.ts';
import type { JsonLine } from './json-lines.ts';

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

/** The most places that are kept. */
const linesMax = 100;

/** What is irregular in the records of one file: records of another format among them, and what its own say wrongly. */
export class Irregularities {
  readonly #own: RecordForm;
  readonly #others: readonly RecordForm[];
  readonly #lines: IrregularLine[] = [];
  #count = 0;

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
    const why = this.#own.faultIn?.(value) ?? this.#foreign(value);
    if (why === undefined) return undefined;
    const found = { line, offset, why };
    this.#count += 1;
    if (this.#lines.length < linesMax) this.#lines.push(found);
    return found;
  }

  #foreign(record: JsonObject): string | undefined {
    if (this.#own.hasRecord?.(record) !== false) return undefined;
    const other = this.#others.find(({ hasRecord }) => hasRecord?.(record) === true);
    return other && `a record of ${other.file}, kept beside the conversation`;
  }
}
