import { quote } from '@tapedeck/tape/internal';
import { ImportError } from '../lines/errors.ts';
import { placesMax } from '../lines/json-lines.ts';

/** A line that was taken, though something in it is wrong. */
export interface IrregularLine {
  readonly line: number;
  /** Bytes of the file before the line. */
  readonly offset: number;
  /** What is wrong, and what became of it. */
  readonly why: string;
}

/** What is wrong with a record, and what becomes of it where it is taken. */
export interface Fault {
  readonly fault: string;
  readonly outcome?: string;
}

/** A line of whose record something is wrong. */
export type FaultyLine = Pick<IrregularLine, 'line' | 'offset'> & Fault;

/** Lines with faults, in their order: the first of them, and how many there are. */
export class FaultyLines {
  readonly lines: FaultyLine[] = [];
  count = 0;

  /** Takes the place of a record only where it is kept: it may have to be read again. */
  add(record: Pick<IrregularLine, 'line' | 'offset'>, fault: Fault): void {
    this.count += 1;
    if (this.lines.length === placesMax) return;
    const { line, offset } = record;
    this.lines.push({ line, offset, ...fault });
  }
}

/** What was found in several ways, in the order of the file: the first faults. Pure. */
export function inOrder(...found: readonly (readonly FaultyLine[])[]): readonly FaultyLine[] {
  return found
    .flat()
    .sort((a, b) => a.offset - b.offset)
    .slice(0, placesMax);
}

/** A line with a fault as it is shown. Pure. */
export function irregularLine({ line, offset, fault, outcome }: FaultyLine): IrregularLine {
  return { line, offset, why: outcome === undefined ? fault : `${fault}, ${outcome}` };
}

/**
 * Refuses a file that may have no irregular line, at its first one. What becomes of such a line elsewhere is not said of this
 * one.
 * @throws IMPORT_UNKNOWN_FORMAT
 */
export function assertRegular([first]: readonly FaultyLine[], file: string): void {
  if (first === undefined) return;
  const { line, offset, fault } = first;
  const message = `cannot import ${quote(file)}: line ${line}, byte ${offset}: ${fault}`;
  throw new ImportError('IMPORT_UNKNOWN_FORMAT', message, { data: { file, line, offset, strict: true } });
}
