import { CallsOnTape } from '../check/calls.ts';
import type { Db } from '../db/db.ts';
import { blobHashes } from '../entry/blob.ts';
import { callOf } from '../entry/call.ts';
import type { EntryKind, Seq } from '../entry/entry.ts';
import type { JsonObject } from '../entry/json.ts';
import { parsed } from '../entry/parsed.ts';
import { isRunOpenAfter } from '../entry/run-state.ts';
import { sourceTime, spokenTime } from '../entry/source-time.ts';
import { type Conversation, heard, speakerOf } from '../entry/speaker.ts';
import { saveTouches, touchesOf } from '../entry/touch.ts';
import { addCall, type CallsRow, callsRow, saveCalls } from '../tape/calls.ts';
import { loadBatch } from '../tape/open-calls.ts';
import { saveRun } from '../tape/open-run.ts';
import type { TapeRow } from '../tape/tape.ts';
import type { BundleEntry } from './bundle.ts';

/**
 * What follows from the entries that a bundle adds to a tape: the rows beside them, by the rules by which an append makes
 * them. Nothing of it is taken from the file. What an entry without its content would change is not known, and left out.
 */
export class Projection {
  readonly #db: Db;
  readonly #tape: TapeRow;
  readonly #calls: CallsOnTape;
  readonly #usage = new Map<string, CallsRow>();
  #conversation: Conversation;
  #spoken: number | null;
  #opensRun: boolean | undefined;
  #lastAt = 0;

  constructor(db: Db, tape: TapeRow) {
    this.#db = db;
    this.#tape = tape;
    this.#conversation = tape;
    this.#spoken = tape.last_message_at;
    const batch = tape.settled_seq < tape.head_seq ? loadBatch(db, tape.id) : undefined;
    const open = batch === undefined ? undefined : { batch, unknown: erasedResults(db, tape, batch.from) };
    this.#calls = new CallsOnTape(tape, [], open);
  }

  /** Receives the new entries in order; returns the hashes of the bytes that one refers to. */
  saw(entry: BundleEntry): readonly string[] {
    const { seq, kind, name, at } = entry;
    this.#lastAt = Math.max(this.#lastAt, at);
    this.#calls.saw(entry);
    const isRead = kind !== 'event' && kind !== 'ui' && !kind.startsWith('x-');
    const payload = entry.payload !== null && isRead ? readOf(kind, entry.payload) : {};
    const meta = parsed(entry.meta);
    this.#opensRun = isRunOpenAfter({ kind, name, payload, meta }) ?? this.#opensRun;
    if (entry.payload === null) {
      // When a message was written at its source is not known: it counts as of when it was recorded.
      if (kind === 'message') this.#spoken = Math.max(this.#spoken ?? 0, at);
      return [];
    }
    this.#sawContent({ seq, kind, name, at, payload, meta });
    if (!entry.payload.includes('"type":"blob"')) return [];
    return blobHashes(isRead ? payload : parsed(entry.payload));
  }

  #sawContent(entry: {
    readonly seq: Seq;
    readonly kind: string;
    readonly name: string | null;
    readonly at: number;
    readonly payload: JsonObject;
    readonly meta: JsonObject;
  }): void {
    const { seq, at, payload, meta } = entry;
    const kind = entry.kind as EntryKind;
    const touches = touchesOf({ kind, name: entry.name ?? undefined, payload, meta });
    if (touches.length > 0) saveTouches(this.#db, this.#tape.id, { seq }, touches);
    const call = callOf({ kind, payload, meta });
    if (call !== undefined) {
      const { model = '' } = call;
      const before = this.#usage.get(model) ?? callsRow(this.#db, this.#tape.id, model);
      this.#usage.set(model, addCall(before, seq, call));
    }
    const spoken = spokenTime({ kind, name: entry.name, at, sourceAt: sourceTime(meta) });
    if (spoken !== undefined) this.#spoken = Math.max(this.#spoken ?? 0, spoken);
    const speaker = speakerOf({ kind, payload, meta });
    if (speaker !== undefined) this.#conversation = heard(this.#conversation, speaker);
  }

  /** Writes the rows, and moves the head of the tape to its last entry, in the caller's transaction. */
  save({ head, hash, epoch }: { readonly head: Seq; readonly hash: string; readonly epoch: number }): void {
    const { id, updated_at } = this.#tape;
    for (const { from_seq, to_seq, calls } of this.#calls.rows())
      this.#db.run(
        `INSERT INTO open_calls (tape_id, from_seq, to_seq, calls) VALUES (@id, @from, @to, @calls)
           ON CONFLICT (tape_id, from_seq) DO UPDATE SET to_seq = @to, calls = @calls`,
        { id, from: from_seq, to: to_seq, calls },
      );
    if (this.#usage.size > 0) saveCalls(this.#db, id, this.#usage.values());
    if (this.#opensRun !== undefined) saveRun(this.#db, id, this.#opensRun);
    this.#db.run(
      `UPDATE tape SET head_seq = @head, head_hash = unhex(@hash), settled_seq = @settled, epoch = @epoch,
         updated_at = @at, last_message_at = @spoken, message_count = @message_count, last_speaker = @last_speaker
         WHERE id = @id`,
      {
        id,
        head,
        hash,
        settled: this.#calls.settledAt(head),
        epoch,
        at: Math.max(updated_at, this.#lastAt),
        spoken: this.#spoken,
        message_count: this.#conversation.message_count,
        last_speaker: this.#conversation.last_speaker,
      },
    );
  }
}

/** Of a message without calls and bytes its role alone, which the store writes first: the text need not be parsed. */
function readOf(kind: string, payload: string): JsonObject {
  const role = kind === 'message' ? /^\{"role":"(user|assistant)",/.exec(payload)?.[1] : undefined;
  if (role === undefined || payload.includes('"tool-call"') || payload.includes('"type":"blob"'))
    return parsed(payload);
  return { role };
}

function erasedResults(db: Db, { id }: TapeRow, after: Seq): number {
  return (
    db.get<{ n: number }>(
      `SELECT count(*) AS n FROM entry WHERE tape_id = @id AND seq > @after AND kind = 'tool-result' AND payload IS NULL`,
      { id, after },
    )?.n ?? 0
  );
}
