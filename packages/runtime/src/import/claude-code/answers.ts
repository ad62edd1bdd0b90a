import { text } from '../text.ts';
import { blocksOf } from './blocks.ts';
import type { Block } from './content.ts';
import type { Call } from './message.ts';
import type { CodeRecord } from './records.ts';

/** The block that answers a call, and its record. */
export interface RecordedResult {
  readonly record: CodeRecord;
  readonly block: Block;
}

/** The results in the file, by call. */
export interface Answers {
  readonly byCall: ReadonlyMap<Call, RecordedResult>;
  /** The records that answer at least one call. */
  readonly records: ReadonlySet<CodeRecord>;
  readonly blocks: ReadonlySet<Block>;
}

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
  records: readonly CodeRecord[],
  onPath: ReadonlySet<CodeRecord>,
): Answers {
  const found = resultsById(records);
  const used = new Set<Block>();
  const byCall = new Map<Call, RecordedResult>();
  for (const { calls, from, to } of stretches) {
    const isHere = ({ record }: RecordedResult): boolean =>
      onPath.has(record) && record.ordinal >= from && record.ordinal < to;
    for (const call of calls) {
      const free = (found.get(call.toolCallId) ?? []).filter(({ block }) => !used.has(block));
      const answer = free.find(isHere) ?? free.find(({ record }) => !onPath.has(record)) ?? free[0];
      if (answer === undefined) continue;
      used.add(answer.block);
      byCall.set(call, answer);
    }
  }
  const answers = [...byCall.values()];
  return { byCall, records: new Set(answers.map(({ record }) => record)), blocks: used };
}

/** The results of a file, by the ids of their calls; of several in one record, the first. */
function resultsById(records: readonly CodeRecord[]): ReadonlyMap<string, readonly RecordedResult[]> {
  const found = new Map<string, RecordedResult[]>();
  for (const record of records) {
    if (record.id === undefined || record.type !== 'user') continue;
    for (const block of blocksOf(record.raw)) {
      const id = block.type === 'tool_result' ? text(block.tool_use_id) : undefined;
      if (id === undefined) continue;
      const before = found.get(id);
      if (before === undefined) found.set(id, [{ record, block }]);
      else if (before.at(-1)?.record !== record) before.push({ record, block });
    }
  }
  return found;
}
