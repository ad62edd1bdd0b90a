import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { type Fault, FaultyLines } from '../../plan/faulty-lines.ts';
import { text } from '../../plan/text.ts';
import { type Chain, isOwnParent } from './chain.ts';
import type { Conversation } from './conversation.ts';
import { keptBy } from './kept.ts';
import { type CodeRecord, isBoundary } from './records.ts';

/** What is wrong with records of a file that shows beside its other records alone: ids that were used before, and circles. Pure. */
export function faultsIn(
  { records, parents, circular }: Chain,
  paths: readonly Pick<Conversation, 'turns'>[],
): FaultyLines {
  const found = new FaultyLines();
  const reused = reusedIn(paths);
  const twice = writtenTwice(records);
  for (const record of records) {
    if (record.isRepeat && !twice.has(record)) found.add(record, repeatOf(record));
    if (circular.has(record) && !isOfCopy(record, parents.get(record)))
      found.add(record, circleAt(record, parents.get(record)));
    if (reused.has(record)) found.add(record, ofCall);
  }
  return found;
}

/**
 * The records that `/branch` wrote a second time, behind the boundary of "Summarize from here", with another parent at most: such a
 * copy is as Claude Code writes it.
 */
function writtenTwice(records: Chain['records']): ReadonlySet<CodeRecord> {
  const repeats = records.filter(({ isRepeat, isChained }) => isRepeat && !isChained);
  if (repeats.length === 0) return new Set();
  const firsts = new Map(records.map((record) => [record.id, record]));
  const isTwice = ({ raw }: CodeRecord): boolean => {
    const first = isObject(raw.forkedFrom) ? firsts.get(text(raw.uuid)) : undefined;
    return first !== undefined && isDeepStrictEqual(withoutParent(first.raw), withoutParent(raw));
  };
  return new Set(repeats.filter(isTwice));
}

function withoutParent({ parentUuid: _, ...record }: JsonObject): JsonObject {
  return record;
}

/** The records with a call that has the id of one before it. */
function reusedIn(paths: readonly Pick<Conversation, 'turns'>[]): ReadonlySet<CodeRecord> {
  const reused = new Set<CodeRecord>();
  for (const { turns } of paths)
    for (const turn of turns)
      if (turn.kind === 'assistant') for (const record of turn.message.reused) reused.add(record);
  return reused;
}

const ofCall: Fault = {
  fault: 'the id of a call was used before',
  outcome: 'and the call is kept beside the conversation',
};

/** A copy of a record that is there, too, has an id of its own in the chain. */
function repeatOf({ isChained }: CodeRecord): Fault {
  const outcome = isChained ? 'taken as another record' : 'kept beside the conversation';
  return { fault: 'its id was used before', outcome };
}

/**
 * Whether a boundary names as what it follows a record that its compaction kept, and nothing is before it: so a copy begins
 * that `--fork-session` wrote, in which what was kept is behind the summary.
 */
function isOfCopy(record: CodeRecord, before: CodeRecord | undefined): boolean {
  if (before !== undefined || record.parent === undefined || !isBoundary(record)) return false;
  const { uuids, tail } = keptBy(record);
  return uuids.has(record.parent) || tail === record.parent;
}

function circleAt(record: CodeRecord, parent: CodeRecord | undefined): Fault {
  return {
    fault: isOwnParent(record) ? 'it is its own parent' : 'its parents lead back to it in a circle',
    outcome: parent === undefined ? 'taken as a beginning' : 'taken as if it followed the record before it',
  };
}
