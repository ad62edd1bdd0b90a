import type { JsonObject } from '@tapedeck/tape';
import { quote } from '@tapedeck/tape/internal';
import { ImportError } from '../lines/errors.ts';
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

const isGlued: Found = {
  fault: 'several records without a newline between them',
  outcome: 'each of which was taken',
};

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

  /** Looks at a record, and returns what is wrong with it (`fault`): nearly always nothing. */
  look({
    line,
    offset,
    value,
  }: Pick<JsonLine, 'line' | 'offset' | 'value'>): (IrregularLine & Found) | undefined {
    const glued = this.#isFirstGlued(line) ? this.#add({ line, offset }, isGlued) : undefined;
    const own = this.#own.faultIn?.(value);
    const found = own === undefined ? this.#foreign(value) : { fault: own };
    return found === undefined ? glued : this.#add({ line, offset }, found);
  }

  #add({ line, offset }: Pick<IrregularLine, 'line' | 'offset'>, found: Found): IrregularLine & Found {
    this.#count += 1;
    const why = found.outcome === undefined ? found.fault : `${found.fault}, ${found.outcome}`;
    if (this.#lines.length < linesMax) this.#lines.push({ line, offset, why });
    return { line, offset, why, ...found };
  }

  /** Whether a record is the second one of its line. */
  #isFirstGlued(line: number): boolean {
    const isFirst = line === this.#line && line !== this.#glued;
    this.#line = line;
    if (isFirst) this.#glued = line;
    return isFirst;
  }

  #foreign(record: JsonObject): Found | undefined {
    if (this.#own.hasRecord?.(record) !== false) return undefined;
    const other = this.#others.find(({ hasRecord }) => hasRecord?.(record) === true);
    return other && { fault: `a record of ${other.file}`, outcome: 'kept beside the conversation' };
  }
}

/** The error of a file that may have no irregular line. What becomes of such a line elsewhere is not said of this one. */
export function irregularError({ line, offset, fault }: IrregularLine & Found, file: string): ImportError {
  const message = `cannot import ${quote(file)}: line ${line}, byte ${offset}: ${fault}`;
  return new ImportError('IMPORT_UNKNOWN_FORMAT', message, { data: { file, line, offset, strict: true } });
}

/** What is wrong with a record, and what becomes of it where it is taken. */
interface Found {
  readonly fault: string;
  readonly outcome?: string;
}
