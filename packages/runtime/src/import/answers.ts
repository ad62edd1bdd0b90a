import { type Block, blocksOf } from './blocks.ts';
import { type CodeRecord, text } from './records.ts';

/** The block that answers a call, and its record. */
export interface RecordedResult {
  readonly record: CodeRecord;
  readonly block: Block;
}

/** The results in the file, by call. */
export interface Answers {
  readonly byCall: ReadonlyMap<string, RecordedResult>;
  /** The records that answer at least one call. */
  readonly records: ReadonlySet<CodeRecord>;
  readonly blocks: ReadonlySet<Block>;
}

/**
 * Finds the result of each call anywhere in the file: parallel calls have their results on separate branches,
 * only one of which is on the path. A result on the path takes precedence; of several, the first counts.
 */
export function answersOf(
  calls: ReadonlySet<string>,
  records: readonly CodeRecord[],
  onPath: ReadonlySet<CodeRecord>,
): Answers {
  const byCall = new Map<string, RecordedResult>();
  const results = records.filter(({ id, type }) => id !== undefined && type === 'user');
  const ordered = [...results.filter((r) => onPath.has(r)), ...results.filter((r) => !onPath.has(r))];
  for (const record of ordered)
    for (const block of blocksOf(record.raw)) {
      const id = block.type === 'tool_result' ? text(block.tool_use_id) : undefined;
      if (id !== undefined && calls.has(id) && !byCall.has(id)) byCall.set(id, { record, block });
    }
  const answers = [...byCall.values()];
  return {
    byCall,
    records: new Set(answers.map(({ record }) => record)),
    blocks: new Set(answers.map(({ block }) => block)),
  };
}
