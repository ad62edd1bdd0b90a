import { isObject } from '@tapedeck/tape/internal';
import { text } from '../../plan/text.ts';
import type { CodeRecord } from './records.ts';
import type { TranscriptTurn } from './turns.ts';

/**
 * What compactions kept verbatim behind their summaries, and left where it was in the file: for the key of each such
 * boundary the key of the first message that it keeps. Claude Code has also written what it kept anew behind the summary,
 * with the old times; such a boundary keeps nothing else.
 */
export function keptTails(turns: readonly TranscriptTurn[]): ReadonlyMap<string, string> {
  const keeps = new Map<string, string>();
  for (const [i, turn] of turns.entries()) {
    if (turn.kind !== 'boundary') continue;
    const kept = keptBy(turn.record);
    const first = turns.slice(0, i).find((one) => keyIn(one, kept) !== undefined);
    const key = first && keyIn(first, kept);
    if (first === undefined || key === undefined) continue;
    if (!isWrittenAnew(first, turns.slice(i + 1))) keeps.set(turn.record.key, key);
  }
  return keeps;
}

/** The uuids of the records that a compaction kept, as far as it lists them. */
export function keptBy({ raw }: Pick<CodeRecord, 'raw'>): ReadonlySet<string> {
  const { preservedMessages } = isObject(raw.compactMetadata) ? raw.compactMetadata : {};
  const listed = isObject(preservedMessages) ? preservedMessages.uuids : undefined;
  const { head } = segmentOf({ raw });
  const ids = Array.isArray(listed) ? listed.flatMap((one) => text(one) ?? []) : [];
  return new Set(head === undefined ? ids : [...ids, head]);
}

/** The uuids of the first and the last record that a compaction kept, and of the one behind which these stand: its summary. */
export function segmentOf({ raw }: Pick<CodeRecord, 'raw'>): {
  readonly head: string | undefined;
  readonly tail: string | undefined;
  readonly anchor: string | undefined;
} {
  const { preservedMessages, preservedSegment } = isObject(raw.compactMetadata) ? raw.compactMetadata : {};
  const segment = isObject(preservedSegment) ? preservedSegment : {};
  const { uuids, anchorUuid } = isObject(preservedMessages) ? preservedMessages : {};
  return {
    head: text(segment.headUuid),
    tail: text(segment.tailUuid) ?? (Array.isArray(uuids) ? text(uuids.at(-1)) : undefined),
    anchor: text(segment.anchorUuid) ?? text(anchorUuid),
  };
}

/** The key of a message, if one of its records is among those kept. */
function keyIn(turn: TranscriptTurn, kept: ReadonlySet<string>): string | undefined {
  const members = turn.kind === 'assistant' ? turn.members : turn.kind === 'user' ? [turn.record] : [];
  return members.some(({ id }) => id !== undefined && kept.has(id)) ? members[0]?.key : undefined;
}

/**
 * Whether what a compaction kept follows behind it, before the next one, with its old time. A file that is attached again behind
 * it may say the same, and was read just before the boundary was written.
 */
function isWrittenAnew(first: TranscriptTurn, turns: readonly TranscriptTurn[]): boolean {
  const [kept, since] = [contentOf(recordOf(first)), text(recordOf(first)?.raw.timestamp)];
  for (const turn of turns) {
    if (turn.kind === 'boundary') return false;
    const record = recordOf(turn);
    if (since !== undefined && text(record?.raw.timestamp) === since && contentOf(record) === kept)
      return true;
  }
  return false;
}

function recordOf(turn: TranscriptTurn): CodeRecord | undefined {
  return turn.kind === 'assistant' ? turn.members[0] : turn.record;
}

function contentOf(record: CodeRecord | undefined): string {
  const { message, attachment, content } = record?.raw ?? {};
  return JSON.stringify(isObject(message) ? message.content : [attachment, content]);
}
