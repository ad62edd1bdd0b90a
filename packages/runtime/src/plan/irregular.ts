import type { JsonObject } from '@tapedeck/tape';
import type { JsonLine } from '../lines/json-lines.ts';
import { type Fault, FaultyLines } from './faulty-lines.ts';
import type { TranscriptTool } from './format.ts';

/** What tells the records of a format from those of others. */
export type RecordForm = Pick<TranscriptTool, 'name' | 'file' | 'hasRecord' | 'faultIn'>;

const isGlued: Fault = {
  fault: 'several records without a newline between them',
  outcome: 'each of which was taken',
};

/** What is irregular in the lines of one file: several records on one, records of another format, and what its own say wrongly. */
export class Irregularities {
  readonly found: FaultyLines = new FaultyLines();
  readonly #own: RecordForm;
  readonly #others: readonly RecordForm[];
  /** The line of the last record, and the last one that was named as one with several. */
  #line = 0;
  #glued = 0;

  constructor(own: RecordForm, others: readonly RecordForm[]) {
    this.#own = own;
    this.#others = others.filter(({ name }) => name !== own.name);
  }

  /** Looks at the next record: nearly always nothing is wrong with it. */
  look(record: Pick<JsonLine, 'line' | 'offset' | 'value'>): void {
    if (this.#isFirstGlued(record.line)) this.found.add(record, isGlued);
    const own = this.#own.faultIn?.(record.value);
    const fault = own === undefined ? this.#foreign(record.value) : { fault: own };
    if (fault !== undefined) this.found.add(record, fault);
  }

  /** Whether a record is the second one of its line. */
  #isFirstGlued(line: number): boolean {
    const isFirst = line === this.#line && line !== this.#glued;
    this.#line = line;
    if (isFirst) this.#glued = line;
    return isFirst;
  }

  #foreign(record: JsonObject): Fault | undefined {
    if (this.#own.hasRecord?.(record) !== false) return undefined;
    const other = this.#others.find(({ hasRecord }) => hasRecord?.(record) === true);
    return other && { fault: `a record of ${other.file}`, outcome: 'kept beside the conversation' };
  }
}
