import { isObject } from '@tapedeck/tape/internal';
import { text } from '../../plan/text.ts';
import { type CodeRecord, isBoundary, isSummary } from './records.ts';
import type { TranscriptTurn } from './turns.ts';

/** What the compactions of a tree kept: each is read once, however many ways lead through it. */
export class KeptTails {
  /** The ordinals of the records that a boundary kept, by its own. */
  readonly #kept = new Map<number, readonly number[]>();
  readonly #wanted = new Set<number>();
  /** The times of records behind a compaction. */
  readonly #times = new Map<number, string | undefined>();

  constructor(tree: readonly CodeRecord[]) {
    const boundaries = tree
      .filter((record) => isBoundary(record) || isSummary(record))
      .map(({ ordinal, raw }) => ({ ordinal, uuids: keptBy({ raw }).uuids }))
      .filter(({ uuids }) => uuids.size > 0);
    if (boundaries.length === 0) return;
    const named = new Set(boundaries.flatMap(({ uuids }) => [...uuids]));
    const records = Map.groupBy(
      tree.filter(({ id }) => id !== undefined && named.has(id)),
      ({ id }) => id,
    );
    const ordinalsOf = (id: string) => records.get(id)?.map(({ ordinal }) => ordinal) ?? [];
    for (const { ordinal, uuids } of boundaries) this.#kept.set(ordinal, [...uuids].flatMap(ordinalsOf));
    for (const ordinals of this.#kept.values()) for (const one of ordinals) this.#wanted.add(one);
  }

  /**
   * What compactions kept verbatim behind their summaries, and left where it was in the file: for the key of each such
   * boundary of a way the key of the first message that it keeps. Claude Code has also written what it kept anew behind
   * the summary, with the old times; such a boundary keeps nothing else.
   */
  of(turns: readonly TranscriptTurn[]): ReadonlyMap<string, string> {
    const keeps = new Map<string, string>();
    if (this.#wanted.size === 0) return keeps;
    /** The first turn with each of the kept records. */
    const places = new Map<number, number>();
    for (const [i, turn] of turns.entries()) {
      for (const { ordinal } of membersOf(turn))
        if (this.#wanted.has(ordinal) && !places.has(ordinal)) places.set(ordinal, i);
      if (turn.kind !== 'boundary') continue;
      const kept = this.#kept.get(turn.record.ordinal) ?? [];
      const at = kept.reduce((first, one) => Math.min(first, places.get(one) ?? first), turns.length);
      const first = turns[withReminders(turns, at)];
      const [member] = first === undefined ? [] : membersOf(first);
      if (first === undefined || member === undefined) continue;
      if (!this.#isWrittenAnew(first, turns, i + 1)) keeps.set(turn.record.key, member.key);
    }
    return keeps;
  }

  /**
   * Whether what a compaction kept follows behind it, before the next one, with its old time. A file that is attached again
   * behind it may say the same, and was read just before the boundary was written.
   */
  #isWrittenAnew(first: TranscriptTurn, turns: readonly TranscriptTurn[], from: number): boolean {
    const record = recordOf(first);
    const since = this.#timeOf(record);
    if (since === undefined) return false;
    for (let i = from; i < turns.length; i += 1) {
      const turn = turns[i];
      if (turn === undefined || turn.kind === 'boundary') return false;
      const one = recordOf(turn);
      if (this.#timeOf(one) === since && contentOf(one) === contentOf(record)) return true;
    }
    return false;
  }

  #timeOf(record: CodeRecord | undefined): string | undefined {
    if (record === undefined) return undefined;
    const { ordinal } = record;
    if (!this.#times.has(ordinal)) this.#times.set(ordinal, text(record.raw.timestamp));
    return this.#times.get(ordinal);
  }
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

/** Where that begins which is sent with a turn: reminders are written behind a prompt, and sent before it. */
function withReminders(turns: readonly TranscriptTurn[], at: number): number {
  const prompt = recordOf(turns[at]);
  let first = at;
  for (let i = at - 1; prompt !== undefined && i >= 0; i -= 1) {
    const turn = turns[i];
    if (turn?.kind === 'aside') continue;
    if (turn?.kind !== 'user' || turn.record.ordinal < prompt.ordinal) break;
    first = i;
  }
  return first;
}

/** The records of a message. */
function membersOf(turn: TranscriptTurn): readonly CodeRecord[] {
  if (turn.kind === 'assistant') return turn.members;
  return turn.kind === 'user' ? [turn.record] : [];
}

function recordOf(turn: TranscriptTurn | undefined): CodeRecord | undefined {
  return turn?.kind === 'assistant' ? turn.members[0] : turn?.record;
}

function contentOf(record: CodeRecord | undefined): string {
  const { message, attachment, content } = record?.raw ?? {};
  return JSON.stringify(isObject(message) ? message.content : [attachment, content]);
}
