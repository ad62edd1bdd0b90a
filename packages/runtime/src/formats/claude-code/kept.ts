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
    const { uuids: kept } = keptBy(turn.record);
    const first = turns.slice(0, i).find((one) => keyIn(one, kept) !== undefined);
    const key = first && keyIn(first, kept);
    if (first === undefined || key === undefined) continue;
    if (!isWrittenAnew(first, turns.slice(i + 1))) keeps.set(turn.record.key, key);
  }
  return keeps;
}

/** What a boundary says of the records that its compaction kept. */
interface Kept {
  /** Their uuids, as far as it lists them. */
  readonly uuids: ReadonlySet<string>;
  /** Those of the first and the last of them, and of the record behind which they stand: its summary. */
  readonly head: string | undefined;
  readonly tail: string | undefined;
  readonly anchor: string | undefined;
}

/** What a compaction kept. Pure. */
export function keptBy({ raw }: Pick<CodeRecord, 'raw'>): Kept {
  const { preservedMessages, preservedSegment } = isObject(raw.compactMetadata) ? raw.compactMetadata : {};
  const segment = isObject(preservedSegment) ? preservedSegment : {};
  const { uuids, anchorUuid } = isObject(preservedMessages) ? preservedMessages : {};
  const listed = Array.isArray(uuids) ? uuids.flatMap((one) => text(one) ?? []) : [];
  const head = text(segment.headUuid);
  return {
    uuids: new Set(head === undefined ? listed : [...listed, head]),
    head,
    tail: text(segment.tailUuid) ?? listed.at(-1),
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
