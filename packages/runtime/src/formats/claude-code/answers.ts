import { blocksOf } from './blocks.ts';
import type { ByRecord } from './by-record.ts';
import type { Block } from './content.ts';
import type { Call } from './message.ts';
import type { CodeRecord } from './records.ts';

/** The block that answers a call: its record, and its place there. */
export interface RecordedResult {
  readonly record: CodeRecord;
  readonly at: number;
}

/** The results in the file, by call. */
export interface Answers {
  readonly byCall: ReadonlyMap<Call, RecordedResult>;
  /** The records that answer at least one call, and the places of the blocks that do. */
  readonly records: ReadonlyMap<CodeRecord, readonly number[]>;
}

/** The block of a result. */
export function blockOf({ record, at }: RecordedResult): Block {
  return blocksOf(record.raw)[at] ?? {};
}

/** The results in a tree, by the ids of their calls. */
export type ResultRecords = ReadonlyMap<string, readonly RecordedResult[]>;

/** Calls of which no two have the same id, and the ordinals between which their messages lie. */
export interface CallStretch {
  readonly calls: readonly Call[];
  readonly from: number;
  readonly to: number;
}

/**
 * Finds the result of each call anywhere in the file: parallel calls have their results on separate branches,
 * only one of which is on the path. A result on the path takes precedence; of several, the first counts. A call that is
 * repeated behind a compaction has the result that is repeated there.
 */
export function answersOf(
  stretches: readonly CallStretch[],
  found: ResultRecords,
  onPath: Pick<ByRecord<true>, 'has'>,
): Answers {
  const used = new Map<CodeRecord, readonly number[]>();
  const isUsed = ({ record, at }: RecordedResult) => used.get(record)?.includes(at) === true;
  const byCall = new Map<Call, RecordedResult>();
  for (const { calls, from, to } of stretches) {
    const isHere = ({ record }: RecordedResult): boolean =>
      onPath.has(record) && record.ordinal >= from && record.ordinal < to;
    for (const call of calls) {
      const free = (found.get(call.toolCallId) ?? []).filter((one) => !isUsed(one));
      const answer = free.find(isHere) ?? free.find(({ record }) => !onPath.has(record)) ?? free[0];
      if (answer === undefined) continue;
      const others = used.get(answer.record);
      used.set(answer.record, others === undefined ? placesOf(answer.at) : [...others, answer.at]);
      byCall.set(call, answer);
    }
  }
  return { byCall, records: used };
}

/** The places of the only block that answers a call: nearly always the first, for which there is one list. */
function placesOf(at: number): readonly number[] {
  return at === 0 ? first : [at];
}

const first: readonly number[] = [0];

/** The results of a file, by the ids of their calls; of several in one record, the first. */
export function resultsById(records: readonly CodeRecord[]): ResultRecords {
  const found = new Map<string, RecordedResult[]>();
  for (const record of records) {
    if (!record.isChained || record.type !== 'user') continue;
    for (const [at, id] of record.results?.entries() ?? []) {
      if (id === '') continue;
      const before = found.get(id);
      if (before === undefined) found.set(id, [{ record, at }]);
      else if (before.at(-1)?.record !== record) before.push({ record, at });
    }
  }
  return found;
}
