import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { JsonLine, RecordList } from '../../lines/json-lines.ts';
import { exportedMark } from '../../plan/exported.ts';
import { keyPart } from '../../plan/key-part.ts';
import { text } from '../../plan/text.ts';
import type { CodeRecord, RecordStart } from './code-record.ts';
import { RecordColumns } from './record-columns.ts';
import { callsOf, messageId, resultsOf, TraitPool } from './traits.ts';

export type { CodeRecord, RecordStart } from './code-record.ts';

const chainTypes = new Set(['user', 'assistant', 'system', 'attachment', 'progress']);
const endTypes = new Set(['user', 'assistant', 'system', 'attachment']);

/** Whether records of a type are links of a chain. */
export function isLinked(type: string): boolean {
  return chainTypes.has(type);
}

/** Whether a conversation can end with this record. A progress record only reports on a running tool. */
export function canEnd({ isChained, type }: Pick<CodeRecord, 'isChained' | 'type'>): boolean {
  return isChained && endTypes.has(type);
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

const fileStart: RecordStart = { ordinal: 0, before: undefined };

/** The records of lines. `start`: what is before the first of them. */
export function readRecords(lines: RecordList, start: RecordStart = fileStart): CodeRecord[] {
  const isOfSubagent = lines.values().every(({ value }) => !isEnd(value) || value.isSidechain === true);
  const reading = new RecordReading({ start, isOfSubagent });
  for (const line of lines) reading.add(line);
  return reading.end(lines);
}

/**
 * Derives the chain from records, one after another. A user or assistant record without a uuid, as other programs write
 * them, follows its predecessor in the file. Of two records with one uuid, the first counts.
 */
export class RecordReading {
  readonly #columns: RecordColumns;
  readonly #isOfSubagent: boolean;
  /** The places of the uuids of the file, and the calls, so that those by which others name them are no other texts. */
  readonly #seen = new Map<string, number>();
  readonly #made = new Map<string, string>();
  readonly #keys = new Set<string>();
  readonly #shared = new TraitPool();
  #before: number | undefined;
  #message: string | undefined;
  #i = 0;

  /** @param isOfSubagent whether all records with which a conversation can end are of subagents */
  constructor({ start = fileStart, isOfSubagent = false }: ReadingStart = {}) {
    this.#columns = new RecordColumns(start);
    this.#isOfSubagent = isOfSubagent;
  }

  add({ value }: JsonLine): void {
    const [i, before] = [this.#i, this.#before];
    const uuid = text(value.uuid);
    const fresh = uuid !== undefined && !this.#seen.has(uuid);
    const original = originalOf(value) ?? uuid;
    const isKey = fresh && original !== undefined && !this.#keys.has(original);
    if (isKey) this.#keys.add(original);
    const traits = this.#shared.of(value);
    const isChained = isLinked(traits.type) && (fresh || uuid === undefined);
    const parent = text(value.parentUuid) ?? text(value.logicalParentUuid);
    const own = messageId(value);
    // Records of a message follow each other: they share one text.
    if (own !== undefined && own !== this.#message) this.#message = own;
    const calls = callsOf(value);
    for (const call of calls ?? []) this.#made.set(call, call);
    this.#columns.push({
      id: isChained ? uuid : undefined,
      isChained,
      parent,
      place: parent === undefined ? undefined : this.#seen.get(parent),
      followsBefore: parent === undefined && uuid === undefined && value.parentUuid === undefined,
      before,
      uuid: isKey ? original : uuid,
      isKey,
      traits,
      message: own && this.#message,
      named: resultsOf(value, this.#made) ?? calls,
      mark: exportedMark(value),
      leaf: text(value.leafUuid),
    });
    if (fresh) this.#seen.set(uuid, i);
    if (canEnd({ isChained, type: traits.type }) && (this.#isOfSubagent || !traits.isSidechain))
      this.#before = i;
    this.#i += 1;
  }

  /** All of them, whose `lines` were added; no other is from then on. */
  end(lines: RecordList): CodeRecord[] {
    this.#columns.link(this.#seen);
    // They take more than the columns.
    for (const known of [this.#seen, this.#made, this.#keys]) known.clear();
    return this.#columns.end(lines);
  }
}

interface ReadingStart {
  readonly start?: RecordStart;
  readonly isOfSubagent?: boolean;
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
