import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { RecordList } from '../../lines/json-lines.ts';
import { exportedMark } from '../../plan/exported.ts';
import { keyPart } from '../../plan/key-part.ts';
import { text } from '../../plan/text.ts';
import type { CodeRecord, RecordStart } from './code-record.ts';
import { LineRecord, RecordColumns } from './record-columns.ts';
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

/**
 * Derives the chain from the records. A user or assistant record without a uuid, as other programs write
 * them, follows its predecessor in the file. Of two records with one uuid, the first counts.
 */
export function readRecords(lines: RecordList, start: RecordStart = fileStart): CodeRecord[] {
  const columns = new RecordColumns(lines, start);
  /** The places of the uuids of the file, and the calls, so that those by which others name them are no other texts. */
  const seen = new Map<string, number>();
  const made = new Map<string, string>();
  const keys = new Set<string>();
  const alone = lines.values().every(({ value }) => !isEnd(value) || value.isSidechain === true);
  const shared = new TraitPool();
  let before: number | undefined;
  let message: string | undefined;
  let i = 0;
  for (const { value } of lines) {
    const uuid = text(value.uuid);
    const fresh = uuid !== undefined && !seen.has(uuid);
    const original = originalOf(value) ?? uuid;
    const isKey = fresh && original !== undefined && !keys.has(original);
    if (isKey) keys.add(original);
    const traits = shared.of(value);
    const isChained = isLinked(traits.type) && (fresh || uuid === undefined);
    const parent = text(value.parentUuid) ?? text(value.logicalParentUuid);
    const own = messageId(value);
    // Records of a message follow each other: they share one text.
    if (own !== undefined && own !== message) message = own;
    const calls = callsOf(value);
    for (const call of calls ?? []) made.set(call, call);
    columns.put(i, {
      id: isChained ? uuid : undefined,
      isChained,
      parent,
      place: parent === undefined ? undefined : seen.get(parent),
      followsBefore: parent === undefined && uuid === undefined && value.parentUuid === undefined,
      before,
      uuid: isKey ? original : uuid,
      isKey,
      traits,
      message: own && message,
      named: resultsOf(value, made) ?? calls,
      mark: exportedMark(value),
      leaf: text(value.leafUuid),
    });
    if (fresh) seen.set(uuid, i);
    if (canEnd({ isChained, type: traits.type }) && (alone || !traits.isSidechain)) before = i;
    i += 1;
  }
  columns.link(seen);
  return Array.from({ length: lines.length }, (_, at) => new LineRecord(columns, at));
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
