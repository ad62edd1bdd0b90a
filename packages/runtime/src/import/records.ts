import { isObject, type Json, type JsonObject } from '@tapedeck/tape';
import type { JsonLine } from './json-lines.ts';

/** One record of a Claude Code transcript: what its place in the conversation depends on, and all the rest. */
export interface CodeRecord {
  /** 1, 2, 3 … in file order. */
  readonly ordinal: number;
  /** Names it in the chain; side records and repetitions of a uuid have none. */
  readonly id: string | undefined;
  /** What it follows: a record's id, in the file or not. */
  readonly parent: string | undefined;
  /** The main record before it in the file: what it follows when the file does not say, see `pathOf`. */
  readonly before: string | undefined;
  /** Key of the entry it becomes: from its uuid, else from its ordinal, so the same in a file that has grown. */
  readonly key: string;
  readonly type: string;
  readonly sidechain: boolean;
  readonly bytes: number;
  readonly raw: JsonObject;
}

const chainTypes = new Set(['user', 'assistant', 'system', 'attachment', 'progress']);
const endTypes = new Set(['user', 'assistant', 'system', 'attachment']);

/** Whether a conversation can end with this record: progress only tells of a tool at work. */
export function canEnd({ id, type }: CodeRecord): boolean {
  return id !== undefined && endTypes.has(type);
}

/** Whether the record starts the conversation anew after a compaction. */
export function isBoundary({ type, raw }: CodeRecord): boolean {
  return type === 'system' && raw.subtype === 'compact_boundary';
}

/** Whether the record carries the summary that stands for what came before a boundary. */
export function isSummary({ type, raw }: CodeRecord): boolean {
  return type === 'user' && raw.isCompactSummary === true;
}

/** Whether a JSON object looks like a record that Claude Code wrote. */
export function isClaudeCode(value: JsonObject): boolean {
  const { type, message } = value;
  if (type === 'user' || type === 'assistant') return isObject(message) && message.content !== undefined;
  if (typeof type === 'string' && chainTypes.has(type))
    return typeof value.uuid === 'string' && 'parentUuid' in value;
  if (type === 'summary') return typeof value.leafUuid === 'string';
  return type === 'file-history-snapshot' && isObject(value.snapshot);
}

/**
 * Reads the chain out of the records. A user or assistant record without a uuid, as other programs write them,
 * follows the one before it. Of two records with one uuid the first counts.
 */
export function readRecords(lines: readonly JsonLine[]): CodeRecord[] {
  const seen = new Set<string>();
  const alone = lines.every(({ value }) => !isEnd(value) || value.isSidechain === true);
  let before: string | undefined;
  return lines.map(({ value, bytes }, i) => {
    const type = text(value.type) ?? '';
    const uuid = text(value.uuid);
    const fresh = uuid !== undefined && !seen.has(uuid);
    const key = fresh ? `cc:${uuid}` : `cc:line:${i + 1}`;
    const inChain = chainTypes.has(type) && (fresh || uuid === undefined);
    const id = inChain ? (uuid ?? `line:${i + 1}`) : undefined;
    const unlinked = uuid === undefined && value.parentUuid === undefined;
    const record: CodeRecord = {
      ordinal: i + 1,
      id,
      parent: text(value.parentUuid) ?? text(value.logicalParentUuid) ?? (unlinked ? before : undefined),
      before,
      key,
      type,
      sidechain: value.isSidechain === true,
      bytes,
      raw: value,
    };
    if (uuid !== undefined) seen.add(uuid);
    if (canEnd(record) && (alone || !record.sidechain)) before = id;
    return record;
  });
}

/** A text that is not empty. */
export function text(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function isEnd(value: JsonObject): boolean {
  return endTypes.has(text(value.type) ?? '');
}
