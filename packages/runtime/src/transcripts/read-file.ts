import type { FoundFile } from '../discovery/index.ts';
import type { FoundInFile } from '../formats/found-in-file.ts';
import { sessionJsonl } from '../formats/session-jsonl.ts';
import { releaseBehind } from '../lines/collect.ts';
import { ImportError } from '../lines/errors.ts';
import {
  compressionIn,
  contentOf,
  KeptLines,
  type LineFault,
  LineReading,
  type OpenFile,
  type ReadState,
  Spool,
  stateOf,
} from '../lines/index.ts';
import { endsInside, mostlyBad } from '../lines/json-line.ts';
import {
  type BadLine,
  type JsonLine,
  type JsonLines,
  placesMax,
  type RecordList,
} from '../lines/json-lines.ts';
import { assertRegular, type FaultyLine, inOrder, irregularLine } from '../plan/faulty-lines.ts';
import type { SourceFile, TranscriptTool } from '../plan/format.ts';
import { formatError } from '../plan/format-error.ts';
import { Irregularities } from '../plan/irregular.ts';
import type { Source } from '../sources/index.ts';
import { transcriptTools } from './tools.ts';

/** How a file is read. */
interface ReadingOptions {
  /** Refuses it at its first bad line. */
  readonly strict: boolean;
  /** Where to begin; without it, at its first line. */
  readonly from?: ReadState;
  /** Called with the bytes of the lines that were read so far, some times while they are. */
  readonly onRead?: (bytes: number) => void;
}

/** One reading of a file of a conversation, which knows afterwards what was read. */
export class FileReading implements SourceFile {
  readonly path: string;
  readonly session: string;
  readonly role: FoundFile['role'];
  readonly #file: OpenFile;
  readonly #options: ReadingOptions;
  readonly #tool: TranscriptTool;
  readonly #directories = new Set<string>();
  readonly #irregular: Irregularities;
  #lines: JsonLines<RecordList> | undefined;
  #state: ReadState | undefined;
  #error: ImportError | undefined;
  /** The content of a compressed file. */
  #spool: Spool | undefined;

  constructor({ path, session, role, tool }: FoundFile, file: OpenFile, options: ReadingOptions) {
    this.path = path;
    this.session = session;
    this.role = role;
    this.#file = file;
    this.#options = options;
    this.#tool = tool;
    this.#irregular = new Irregularities(tool, [...transcriptTools, sessionJsonl]);
  }

  /** Why nothing of it was read, though its conversation can do without it. */
  get error(): ImportError | undefined {
    return this.#error;
  }

  async lines(each?: (record: JsonLine) => void): Promise<JsonLines<RecordList>> {
    const known = this.#lines;
    if (known !== undefined) {
      if (each !== undefined) for (const record of known.records) each(record);
      return known;
    }
    try {
      this.#lines = await this.#read(each);
    } catch (error) {
      return this.#leaveOut(error);
    }
    return this.#lines;
  }

  async bytes(): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    // A piece is good until the next one only.
    for await (const piece of contentOf(this.#file)) pieces.push(Uint8Array.from(piece));
    return Buffer.concat(pieces);
  }

  /** The working directories that its records name; none, if they were not read. */
  get directories(): ReadonlySet<string> {
    return this.#directories;
  }

  /** What was found in it, by what became of its records; without faults of its lines, if they were not read. */
  found({
    counts,
    faults,
  }: Pick<FoundInFile, 'counts'> & {
    /** Faults of records that show beside others alone. */
    readonly faults: readonly FaultyLine[];
  }): FoundInFile {
    const { glued = 0, truncated = 0, skipped = 0, bad = [] } = this.#lines ?? {};
    const { count, lines } = this.#irregular.found;
    const more = { skipped: counts.skipped + skipped, irregular: counts.irregular + count };
    const irregular = inOrder(lines, faults).map(irregularLine);
    return { counts: { ...counts, glued, truncated, ...more }, bad, irregular };
  }

  /** What is to be recorded of it. */
  async read(): Promise<Pick<Source, keyof OpenFile['facts'] | 'compression' | 'read'>> {
    const compression = compressionIn(this.#file);
    const read = this.#state ?? (await stateOf(this.#file));
    return { ...this.#file.facts, ...(compression !== undefined && { compression }), read };
  }

  /**
   * Refuses a file of which something else was read than is there now.
   * @throws IMPORT_SOURCE_CHANGED
   */
  assertWhole(): void {
    const became = this.#file.since();
    if (became === 'none' || became === 'grown' || became === 'gone') return;
    // A part is written as a whole, and so is what takes its place: the next import reads that.
    if (became === 'replaced' && this.role === 'part') return;
    throw new ImportError(
      'IMPORT_SOURCE_CHANGED',
      `cannot import '${this.path}': it was ${became} while it was read`,
      { data: { file: this.path, why: `it was ${became} while it was read` } },
    );
  }

  /**
   * Refuses a file that must have no irregular line, by what shows beside other records alone. One that its conversation can do
   * without has no records from then on, and has `error`.
   * @throws IMPORT_UNKNOWN_FORMAT at its first one
   */
  assertRegular(faults: readonly FaultyLine[]): void {
    if (!this.#options.strict) return;
    try {
      assertRegular(faults, this.path);
    } catch (error) {
      this.#leaveOut(error);
    }
  }

  /** Frees what it keeps on the disk. The records are not read after that. */
  close(): void {
    this.#spool?.close();
  }

  /** Leaves a file out that its conversation can do without, and throws the error of any other. */
  #leaveOut(error: unknown): JsonLines<RecordList> {
    if (this.role === 'main' || !(error instanceof ImportError)) throw error;
    this.#error = error;
    this.#lines = { records: [], glued: 0, truncated: 0, skipped: 0, bad: [] };
    return this.#lines;
  }

  /** @throws IMPORT_UNKNOWN_FORMAT at the first irregular line of a file that must have none, IMPORT_FORMAT_FAILED */
  #look(record: JsonLine): void {
    try {
      if (this.#tool.directoryOf !== undefined)
        this.#directories.add(this.#tool.directoryOf(record.value) ?? '');
      this.#irregular.look(record);
    } catch (cause) {
      throw formatError(cause, { tool: this.#tool, file: this.path, line: record.line });
    }
    if (this.#options.strict) assertRegular(this.#irregular.found.lines, this.path);
  }

  async #read(each?: (record: JsonLine) => void): Promise<JsonLines<RecordList>> {
    const { path, readInto, facts } = this.#file;
    // A line of a compressed file cannot be read again without all before it.
    const spool = compressionIn(this.#file) === undefined ? undefined : new Spool(path);
    this.#spool = spool;
    const records = new KeptLines(spool ?? { path, readInto, size: facts.size });
    const reading = new LineReading(this.#file, {
      ...this.#options,
      ...(spool !== undefined && { onContent: (piece) => spool.write(piece) }),
    });
    const bad: BadLine[] = [];
    let first: LineFault | undefined;
    for await (const batch of reading.batches()) {
      for (const record of batch.records) {
        this.#look(record);
        records.push(record);
        each?.(record);
      }
      first ??= batch.faults[0];
      const last = batch.records.at(-1);
      if (last !== undefined) this.#options.onRead?.(last.offset + last.bytes);
      for (const { line, offset, why } of batch.faults)
        if (bad.length < placesMax) bad.push({ line, offset, why });
    }
    const { faults, glued } = reading.counts;
    if (first !== undefined && faults > records.length)
      throw mostlyBad(this.path, first, { bad: faults, records: records.length });
    this.#state = reading.state;
    releaseBehind(records.length);
    const { unfinished } = reading;
    if (unfinished !== undefined && bad.length < placesMax) bad.push({ ...unfinished, why: endsInside });
    return { records, glued, truncated: unfinished === undefined ? 0 : 1, skipped: faults, bad };
  }
}
