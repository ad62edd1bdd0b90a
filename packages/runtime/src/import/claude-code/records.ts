import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { type ExportedMark, exportedMark } from '../exported.ts';
import type { JsonLine } from '../json-lines.ts';
import { keyPart } from '../key-part.ts';
import { text } from '../text.ts';
import { callsOf, messageId, type Results, resultsOf, TraitPool, type Traits } from './traits.ts';

/**
 * A record of a Claude Code transcript: the fields that determine its place in the conversation, and the
 * whole record.
 */
export interface CodeRecord {
  /** 1, 2, 3 … in file order. */
  readonly ordinal: number;
  /** Its id in the chain; undefined for side records and for repetitions of a uuid. */
  readonly id: string | undefined;
  /** The id of its predecessor, whether or not the file contains it. */
  readonly parent: string | undefined;
  /** The preceding main record of the file; see `pathOf`. */
  readonly before: string | undefined;
  /**
   * The key of its entry, from its uuid or else its ordinal, so that it stays the same when the file grows.
   */
  readonly key: string;
  /** Its uuid; that of the record of which it is a copy, if it has another one. */
  readonly uuid: string | undefined;
  readonly type: string;
  readonly sidechain: boolean;
  /** What an export of this project wrote into it. */
  readonly mark: ExportedMark | undefined;
  readonly bytes: number;
  /** What is asked of it more than once. */
  readonly traits: Traits;
  /** What the records of its message have in common. */
  readonly message: string | undefined;
  readonly results: Results | undefined;
  /** The calls that it makes. */
  readonly calls: readonly string[] | undefined;
  /** Its line, and the bytes of the file before that. */
  readonly line: number;
  readonly offset: number;
  /** The record to which it points as the end of the conversation, or of what it sums up. */
  readonly leaf: string | undefined;
  /** Whether `raw` is read again each time. */
  readonly isAway: boolean;
  readonly raw: JsonObject;
}

/** A record, whose content its line has. A large file has hundreds of thousands: each field counts. */
class LineRecord implements CodeRecord {
  readonly ordinal: number;
  readonly id: string | undefined;
  readonly parent: string | undefined;
  readonly before: string | undefined;
  readonly uuid: string | undefined;
  readonly traits: Traits;
  readonly message: string | undefined;
  readonly #line: JsonLine;
  /** The results of a user record, or the calls of an assistant record. */
  readonly #named: Results | readonly string[] | undefined;
  readonly #rare: RareFields | undefined;

  constructor(line: JsonLine, { isKey, mark, leaf, results, calls, ...fields }: LineFields) {
    this.ordinal = fields.ordinal;
    this.id = fields.id;
    this.parent = fields.parent;
    this.before = fields.before;
    this.uuid = fields.uuid;
    this.traits = fields.traits;
    this.message = fields.message;
    this.#line = line;
    this.#named = results ?? calls;
    const hasOther = !isKey && this.uuid !== undefined;
    const isPlain = mark === undefined && leaf === undefined && !hasOther;
    this.#rare = isPlain ? undefined : { mark, leaf, hasOther };
  }

  get type(): string {
    return this.traits.type;
  }

  get sidechain(): boolean {
    return this.traits.isSidechain;
  }

  get mark(): ExportedMark | undefined {
    return this.#rare?.mark;
  }

  get leaf(): string | undefined {
    return this.#rare?.leaf;
  }

  get results(): Results | undefined {
    return this.type === 'user' ? (this.#named as Results | undefined) : undefined;
  }

  get calls(): readonly string[] | undefined {
    return this.type === 'assistant' ? (this.#named as readonly string[] | undefined) : undefined;
  }

  get key(): string {
    return this.uuid === undefined || this.#rare?.hasOther === true
      ? `cc:line:${this.ordinal}`
      : `cc:${keyPart(this.uuid)}`;
  }

  get line(): number {
    return this.#line.line;
  }

  get offset(): number {
    return this.#line.offset;
  }

  get bytes(): number {
    return this.#line.bytes;
  }

  get isAway(): boolean {
    return this.#line.isAway === true;
  }

  get raw(): JsonObject {
    return this.#line.value;
  }
}

/** What few records have. */
interface RareFields extends Pick<CodeRecord, 'mark' | 'leaf'> {
  /** Whether another record has its uuid, too, and with that the key. */
  readonly hasOther: boolean;
}

interface LineFields
  extends Omit<CodeRecord, 'type' | 'sidechain' | 'key' | 'raw' | 'line' | 'offset' | 'bytes' | 'isAway'> {
  /** Whether its uuid is the key of its entry. */
  readonly isKey: boolean;
}

const chainTypes = new Set(['user', 'assistant', 'system', 'attachment', 'progress']);
const endTypes = new Set(['user', 'assistant', 'system', 'attachment']);

/** Whether records of a type are links of a chain. */
export function isLinked(type: string): boolean {
  return chainTypes.has(type);
}

/** Whether a conversation can end with this record. A progress record only reports on a running tool. */
export function canEnd({ id, type }: CodeRecord): boolean {
  return id !== undefined && endTypes.has(type);
}

/** Whether the record restarts the conversation after a compaction. */
export function isBoundary({ traits }: CodeRecord): boolean {
  return traits.isBoundary;
}

/** Whether the record contains the summary of a compaction. */
export function isSummary({ traits }: CodeRecord): boolean {
  return traits.isSummary;
}

/** Whether a JSON object looks like a Claude Code record. */
export function isClaudeCode(value: JsonObject): boolean {
  const { type, message } = value;
  if (type === 'user' || type === 'assistant') return isObject(message) && message.content !== undefined;
  if (typeof type === 'string' && chainTypes.has(type))
    return typeof value.uuid === 'string' && 'parentUuid' in value;
  if (type === 'summary') return typeof value.leafUuid === 'string';
  return type === 'file-history-snapshot' && isObject(value.snapshot);
}

/** What is before the first of some records. */
export interface RecordStart {
  /** How many records. */
  readonly ordinal: number;
  /** The last main record. */
  readonly before: string | undefined;
}

const fileStart: RecordStart = { ordinal: 0, before: undefined };

/**
 * Derives the chain from the records. A user or assistant record without a uuid, as other programs write
 * them, follows its predecessor in the file. Of two records with one uuid, the first counts.
 */
export function readRecords(lines: readonly JsonLine[], start: RecordStart = fileStart): CodeRecord[] {
  /** The ids of the file, each as one text: that of a record and those by which others name it. So it is with calls. */
  const seen = new Map<string, string>();
  const made = new Map<string, string>();
  const oneText = (id: string | undefined) => (id === undefined ? undefined : (seen.get(id) ?? id));
  const keys = new Set<string>();
  const alone = lines.every(({ value }) => !isEnd(value) || value.isSidechain === true);
  const shared = new TraitPool();
  let { before } = start;
  let message: string | undefined;
  return lines.map((line, i) => {
    const { value } = line;
    const ordinal = start.ordinal + i + 1;
    const type = text(value.type) ?? '';
    const uuid = text(value.uuid);
    const fresh = uuid !== undefined && !seen.has(uuid);
    const original = originalOf(value) ?? uuid;
    const isKey = fresh && original !== undefined && !keys.has(original);
    if (isKey) keys.add(original);
    const inChain = isLinked(type) && (fresh || uuid === undefined);
    const id = inChain ? (uuid ?? `line:${ordinal}`) : undefined;
    const unlinked = uuid === undefined && value.parentUuid === undefined;
    const own = messageId(value);
    // Records of a message follow each other: they share one text.
    if (own !== undefined && own !== message) message = own;
    const calls = callsOf(value);
    for (const call of calls ?? []) made.set(call, call);
    const record = new LineRecord(line, {
      ordinal,
      id,
      parent:
        oneText(text(value.parentUuid) ?? text(value.logicalParentUuid)) ?? (unlinked ? before : undefined),
      before,
      isKey,
      uuid: isKey ? original : uuid,
      mark: exportedMark(value),
      traits: shared.of(value),
      message: own && message,
      results: resultsOf(value, made),
      calls,
      leaf: text(value.leafUuid),
    });
    if (fresh) seen.set(uuid, uuid);
    if (canEnd(record) && (alone || !record.sidechain)) before = id;
    return record;
  });
}

/** The key of a record that has a uuid, if it is the first one that has it. */
export function keyIn(value: JsonObject): string | undefined {
  const id = originalOf(value) ?? text(value.uuid);
  return id === undefined ? undefined : `cc:${keyPart(id)}`;
}

/** The uuid of the record of which this one is a copy, where the copy has another. */
function originalOf({ forkedFrom }: JsonObject): string | undefined {
  return isObject(forkedFrom) ? text(forkedFrom.messageUuid) : undefined;
}

function isEnd(value: JsonObject): boolean {
  return endTypes.has(text(value.type) ?? '');
}
