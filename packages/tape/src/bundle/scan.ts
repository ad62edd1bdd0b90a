import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { LineageLine } from '../lineage/line.ts';
import type { OnProgress } from '../progress.ts';
import {
  type BundleEnd,
  type BundleHeader,
  type BundleStart,
  type BundleTape,
  badBundle,
  headBytesMax,
  sessionsMax,
} from './bundle.ts';
import { checkEnd, checkHeader, checkTape } from './check.ts';
import { parseBundleLine } from './line-record.ts';
import { type BundleLine, checkedValue, linesFrom, type Place, recordOf } from './records.ts';
import type { Quarantine } from './unpack.ts';

/** A line of the lineage, as a bundle has it. */
export interface BundledLine {
  readonly line: LineageLine;
  readonly at: Place;
}

/** A session, and where its entries begin. */
export interface BundledTape {
  readonly tape: BundleTape;
  /** What its entries in the file follow. */
  readonly start: BundleStart;
  readonly at: Place;
  readonly from: Place;
}

/** What is known of a bundle once it was read as a whole: everything but its entries and bytes. */
export interface Scanned {
  readonly file: Quarantine;
  readonly header: BundleHeader;
  readonly tapes: readonly BundledTape[];
  readonly lines: readonly BundledLine[];
}

const pauseEvery = 2_000;
const reportEvery = 100;
const headerBytesMax = 64 * 1024;

/**
 * Reads a bundle once, without a lock and without keeping its entries: it is whole, has its digest, and its sessions and
 * lines have the right form and order.
 * @throws TAPE_BAD_BUNDLE
 */
export async function scanBundle(file: Quarantine, onProgress: OnProgress): Promise<Scanned> {
  const scan = new Scan(file);
  let lines = 0;
  for (const line of linesFrom(file, { number: 1, offset: 0 })) {
    scan.take(line);
    lines += 1;
    if (lines % reportEvery === 0) onProgress({ done: line.offset, total: file.size });
    if (lines % pauseEvery === 0) await setImmediate();
  }
  return scan.end(lines);
}

type Part = 'header' | 'tapes' | 'lines' | 'entries' | 'end';

class Scan {
  readonly #file: Quarantine;
  readonly #sum = createHash('sha256');
  readonly #tapes: (Omit<BundledTape, 'from'> & { from?: Place })[] = [];
  readonly #byUlid = new Map<string, BundleTape>();
  readonly #lines: BundledLine[] = [];
  #part: Part = 'header';
  #header: BundleHeader | undefined;
  #end: BundleEnd | undefined;
  /** Number of the sessions whose entries have begun. */
  #begun = 0;
  #entries = 0;
  /** The number of entries that the sessions say to have whose entries have begun. */
  #due = 0;
  #headBytes = 0;

  constructor(file: Quarantine) {
    this.#file = file;
  }

  take(line: BundleLine): void {
    if (this.#part === 'end') this.#fail(line, 'something follows the end');
    const { field } = line;
    if (field === 'end') {
      this.#takeEnd(line);
      return;
    }
    this.#sum.update(line.bytes);
    if (this.#part === 'header') this.#takeHeader(line);
    else if (field === 'e') this.#takeEntry(line);
    else if (field === 'b') this.#inEntries(line);
    else if (field === 'tape') this.#takeTape(line);
    else if (field === 'line') this.#takeLine(line);
    else if (field === 'of') this.#takeOf(line);
    else this.#fail(line, 'the line is no record of a bundle');
  }

  end(lines: number): Scanned {
    const [header, end] = [this.#header, this.#end];
    if (header === undefined || end === undefined)
      throw badBundle(
        this.#file.name,
        lines === 0 ? null : lines,
        lines === 0 ? 'it is empty' : 'it has no end: the file was cut off',
      );
    const tapes = this.#tapes.map((one) => ({ ...one, from: one.from ?? one.at }));
    return { file: this.#file, header, tapes, lines: this.#lines };
  }

  #takeHeader(line: BundleLine): void {
    if (line.bytes.length > headerBytesMax) this.#fail(line, 'it is no bundle: its first line is too long');
    let value: unknown;
    try {
      value = JSON.parse(line.text);
    } catch {
      this.#fail(line, 'it is no bundle: its first line is not JSON');
    }
    this.#header = checkedValue(this.#file, line, checkHeader(value));
    this.#part = 'tapes';
  }

  #takeTape(line: BundleLine): void {
    if (this.#part !== 'tapes') this.#fail(line, 'a session is out of its place');
    this.#countHead(line);
    const header = this.#header as BundleHeader;
    const { tape, start } = checkedValue(this.#file, line, checkTape(recordOf(this.#file, line)[1], header));
    if (this.#byUlid.has(tape.ulid)) this.#fail(line, `session ${tape.ulid} is there twice`);
    const parent = tape.parent === null ? undefined : this.#byUlid.get(tape.parent);
    if (tape.parent !== null && parent === undefined)
      this.#fail(line, `the parent of session ${tape.ulid} is not before it`);
    if (parent !== undefined && (tape.base > parent.head || tape.floor < parent.floor))
      this.#fail(line, `session ${tape.ulid} inherits positions that its parent does not have`);
    if (this.#tapes.length >= sessionsMax) this.#fail(line, `it has over ${sessionsMax} sessions`);
    this.#byUlid.set(tape.ulid, tape);
    this.#tapes.push({ tape, start, at: placeOf(line) });
  }

  #takeLine(line: BundleLine): void {
    if (this.#part === 'tapes') this.#part = 'lines';
    if (this.#part !== 'lines') this.#fail(line, 'a line of the lineage is out of its place');
    this.#countHead(line);
    const checked = parseBundleLine(recordOf(this.#file, line)[1]);
    this.#lines.push({ line: checkedValue(this.#file, line, checked), at: placeOf(line) });
  }

  #takeOf(line: BundleLine): void {
    if (this.#part === 'tapes' || this.#part === 'lines') this.#part = 'entries';
    const next = this.#tapes[this.#begun];
    if (next === undefined || recordOf(this.#file, line)[1] !== next.tape.ulid)
      this.#fail(line, 'the entries are not in the order of the sessions');
    next.from = { number: line.number + 1, offset: line.offset + line.bytes.length };
    this.#assertWhole(line);
    this.#begun += 1;
    this.#due += next.tape.head - next.start.after;
  }

  #takeEntry(line: BundleLine): void {
    this.#inEntries(line);
    this.#entries += 1;
  }

  #takeEnd(line: BundleLine): void {
    const end = checkedValue(this.#file, line, checkEnd(recordOf(this.#file, line)[1]));
    this.#part = 'end';
    if (this.#tapes.length === 0 || this.#begun !== this.#tapes.length)
      this.#fail(line, 'the entries of a session are missing');
    this.#assertWhole(line);
    if (end.lines !== line.number - 1 || end.sessions !== this.#tapes.length || end.entries !== this.#entries)
      this.#fail(line, 'it has another number of lines, sessions or entries than its end says');
    if (end.sha256 !== this.#sum.digest('hex'))
      this.#fail(line, 'it does not have its digest: it was changed');
    const session = this.#header?.session;
    if (session !== undefined && !this.#byUlid.has(session))
      this.#fail(line, 'the exported session is not in it');
    this.#end = end;
  }

  /** The sessions whose entries have begun have all of them by now. */
  #assertWhole(line: BundleLine): void {
    if (this.#due !== this.#entries) this.#fail(line, 'a session has another number of entries than it says');
  }

  #inEntries(line: BundleLine): void {
    if (this.#part !== 'entries') this.#fail(line, 'an entry is out of its place');
  }

  #countHead(line: BundleLine): void {
    this.#headBytes += line.bytes.length;
    if (this.#headBytes > headBytesMax)
      this.#fail(line, `its sessions and lines have over ${headBytesMax} bytes`);
  }

  #fail(line: Place, why: string): never {
    throw badBundle(this.#file.name, line.number, why);
  }
}

function placeOf({ number, offset }: BundleLine): Place {
  return { number, offset };
}
