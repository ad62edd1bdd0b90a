import type { JsonObject } from '@tapedeck/tape';
import type { JsonLine, RecordList } from '../../lines/json-lines.ts';
import type { ExportedMark } from '../../plan/exported.ts';
import { keyPart } from '../../plan/key-part.ts';
import type { CodeRecord, RecordStart } from './code-record.ts';
import { IdColumn } from './id-column.ts';
import type { Results, Traits } from './traits.ts';

/** What is held of one record. */
interface RecordFields
  extends Pick<CodeRecord, 'isChained' | 'uuid' | 'traits' | 'message' | 'mark' | 'leaf'> {
  /** The uuid by which others name it in the chain. */
  readonly id: string | undefined;
  /** The uuid of its predecessor, as it says. */
  readonly parent: string | undefined;
  /** The place of the record that has that uuid, if it came before. */
  readonly place: number | undefined;
  /** Whether it names none, and follows the main record before it. */
  readonly followsBefore: boolean;
  /** The place of the main record before it. */
  readonly before: number | undefined;
  /** Whether its uuid is the key of its entry. */
  readonly isKey: boolean;
  /** The results of a user record, or the calls of an assistant record. */
  readonly named: readonly string[] | undefined;
}

/** What few records have. */
interface RareFields extends Pick<CodeRecord, 'mark' | 'leaf'> {
  /** Whether another record has its uuid, too, and with that the key. */
  readonly hasOther: boolean;
}

/**
 * What is held of each record of a file while its conversations are planned and written, in columns: a large file has hundreds
 * of thousands of records, and an object with these fields takes three times as much. All else is in the line.
 */
export class RecordColumns {
  #lines: RecordList = [];
  readonly #start: RecordStart;
  readonly #uuids = new IdColumn();
  /** Of copies, which have the uuid of another record as their key. */
  #ids: IdColumn | undefined;
  /** The places of records, from 1; 0 for none in the file. */
  #parents = new Uint32Array(1024);
  #befores = new Uint32Array(1024);
  /** The predecessors that are not in the file. */
  readonly #missing = new Map<number, string>();
  #isChained = new Uint8Array(1024);
  #traits: Traits[] = [];
  #messages: (string | undefined)[] = [];
  /** Most records that name calls name one: it is held without a list. */
  #named: (string | readonly string[] | undefined)[] = [];
  readonly #rare = new Map<number, RareFields>();

  constructor(start: RecordStart) {
    this.#start = start;
  }

  /** Holds the next record. */
  push({ id, uuid, parent, before, named, mark, leaf, ...fields }: RecordFields): void {
    const i = this.#traits.length;
    if (i === this.#parents.length) this.#hold(Math.ceil(i * 1.5));
    if (uuid !== undefined) this.#uuids.set(i, uuid);
    if (id !== undefined && id !== uuid) {
      this.#ids ??= new IdColumn();
      this.#ids.set(i, id);
    }
    this.#isChained[i] = fields.isChained ? 1 : 0;
    this.#befores[i] = before === undefined ? 0 : before + 1;
    const known = fields.followsBefore ? before : fields.place;
    const missing = fields.followsBefore ? this.#start.before : parent;
    if (known !== undefined && this.isChained(known)) this.#parents[i] = known + 1;
    else if (missing !== undefined) this.#missing.set(i, missing);
    this.#traits.push(fields.traits);
    this.#messages.push(fields.message);
    this.#named.push(named?.length === 1 ? named[0] : named);
    const hasOther = !fields.isKey && uuid !== undefined;
    if (mark !== undefined || leaf !== undefined || hasOther) this.#rare.set(i, { mark, leaf, hasOther });
  }

  /** All records, whose content is in `lines`. No room is left for others. */
  end(lines: RecordList): LineRecord[] {
    this.#lines = lines;
    const { length } = this.#traits;
    this.#hold(length);
    this.#traits = this.#traits.slice();
    this.#messages = this.#messages.slice();
    this.#named = this.#named.slice();
    return Array.from({ length }, (_, i) => new LineRecord(this, i));
  }

  #hold(length: number): void {
    // A buffer that is transferred leaves no copy.
    this.#parents = new Uint32Array(this.#parents.buffer.transfer(4 * length));
    this.#befores = new Uint32Array(this.#befores.buffer.transfer(4 * length));
    this.#isChained = new Uint8Array(this.#isChained.buffer.transfer(length));
    this.#uuids.hold(length);
    this.#ids?.hold(length);
  }

  /** Finds predecessors among the records that came later, by the places of the uuids of the file. */
  link(places: ReadonlyMap<string, number>): void {
    for (const [i, parent] of this.#missing) {
      const at = places.get(parent);
      if (at === undefined || this.#isChained[at] === 0) continue;
      this.#parents[i] = at + 1;
      this.#missing.delete(i);
    }
  }

  isChained(i: number): boolean {
    return this.#isChained[i] === 1;
  }

  id(i: number): string | undefined {
    if (!this.isChained(i)) return undefined;
    return this.#ids?.get(i) ?? this.uuid(i) ?? `line:${this.ordinalOf(i)}`;
  }

  uuid(i: number): string | undefined {
    return this.#uuids.get(i);
  }

  parent(i: number): string | undefined {
    const at = this.#parents[i] ?? 0;
    return at === 0 ? this.#missing.get(i) : this.id(at - 1);
  }

  parentAt(i: number): number | undefined {
    return this.#ordinalIn(this.#parents, i);
  }

  before(i: number): string | undefined {
    const at = this.#befores[i] ?? 0;
    return at === 0 ? this.#start.before : this.id(at - 1);
  }

  beforeAt(i: number): number | undefined {
    return this.#ordinalIn(this.#befores, i);
  }

  traits(i: number): Traits {
    return this.#traits[i] as Traits;
  }

  message(i: number): string | undefined {
    return this.#messages[i];
  }

  named(i: number): readonly string[] | undefined {
    const named = this.#named[i];
    return typeof named === 'string' ? [named] : named;
  }

  rare(i: number): RareFields | undefined {
    return this.#rare.get(i);
  }

  line(i: number): JsonLine {
    return this.#lines.at(i) as JsonLine;
  }

  ordinalOf(i: number): number {
    return this.#start.ordinal + i + 1;
  }

  #ordinalIn(column: Uint32Array, i: number): number | undefined {
    const at = column[i] ?? 0;
    return at === 0 ? undefined : this.ordinalOf(at - 1);
  }
}

/** A record by its place in the columns. */
export class LineRecord implements CodeRecord {
  readonly #columns: RecordColumns;
  readonly #i: number;

  constructor(columns: RecordColumns, i: number) {
    this.#columns = columns;
    this.#i = i;
  }

  get ordinal(): number {
    return this.#columns.ordinalOf(this.#i);
  }

  get isChained(): boolean {
    return this.#columns.isChained(this.#i);
  }

  get id(): string | undefined {
    return this.#columns.id(this.#i);
  }

  get parent(): string | undefined {
    return this.#columns.parent(this.#i);
  }

  get parentAt(): number | undefined {
    return this.#columns.parentAt(this.#i);
  }

  get before(): string | undefined {
    return this.#columns.before(this.#i);
  }

  get beforeAt(): number | undefined {
    return this.#columns.beforeAt(this.#i);
  }

  get uuid(): string | undefined {
    return this.#columns.uuid(this.#i);
  }

  get traits(): Traits {
    return this.#columns.traits(this.#i);
  }

  get type(): string {
    return this.traits.type;
  }

  get sidechain(): boolean {
    return this.traits.isSidechain;
  }

  get message(): string | undefined {
    return this.#columns.message(this.#i);
  }

  get mark(): ExportedMark | undefined {
    return this.#columns.rare(this.#i)?.mark;
  }

  get leaf(): string | undefined {
    return this.#columns.rare(this.#i)?.leaf;
  }

  get results(): Results | undefined {
    return this.type === 'user' ? this.#columns.named(this.#i) : undefined;
  }

  get calls(): readonly string[] | undefined {
    return this.type === 'assistant' ? this.#columns.named(this.#i) : undefined;
  }

  get isRepeat(): boolean {
    return this.#columns.rare(this.#i)?.hasOther === true;
  }

  get key(): string {
    const { uuid } = this;
    return uuid === undefined || this.isRepeat ? `cc:line:${this.ordinal}` : `cc:${keyPart(uuid)}`;
  }

  get line(): number {
    return this.#columns.line(this.#i).line;
  }

  get offset(): number {
    return this.#columns.line(this.#i).offset;
  }

  get bytes(): number {
    return this.#columns.line(this.#i).bytes;
  }

  get isAway(): boolean {
    return this.#columns.line(this.#i).isAway === true;
  }

  get raw(): JsonObject {
    return this.#columns.line(this.#i).value;
  }

  get around(): JsonObject | undefined {
    return this.#columns.line(this.#i).around;
  }
}
