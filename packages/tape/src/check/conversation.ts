import type { Db } from '../db/db.ts';
import { parsed } from '../entry/parsed.ts';
import { type Conversation, heard, type Speaker, silence, speakerOf } from '../entry/speaker.ts';
import type { TapeRow } from '../tape/tape.ts';
import { type Problem, problemsOf } from './problem.ts';

/** The columns of an entry that say whose message it is. */
interface SaidEntry {
  readonly seq: number;
  readonly kind: string;
  readonly meta: string | null;
  readonly payload: string | null;
}

/** Counts the messages of a tape from its entries, to compare them with the tape's row. */
export class ConversationOnTape {
  #found: Conversation = silence;
  /** Messages that were erased, with the name of their speakers. */
  #erased = 0;
  #isLastErased = false;

  /** Receives the entries of the tape, in order. */
  saw(entry: SaidEntry): void {
    if (entry.kind !== 'message') return;
    if (entry.payload === null) {
      this.#erased += 1;
      this.#isLastErased = true;
      return;
    }
    const speaker = storedSpeaker(entry);
    if (speaker === undefined) return;
    this.#found = heard(this.#found, speaker);
    this.#isLastErased = false;
  }

  /** What follows from the entries seen so far, the erased ones left out. */
  get found(): Conversation {
    return this.#found;
  }

  /**
   * Yields a difference from the row, once all entries were seen. An erased message adds up to two: itself, and the
   * second half of an answer that it divided.
   */
  *problems({ name, message_count, last_speaker }: TapeRow): Generator<Problem> {
    const { message_count: least, last_speaker: last } = this.#found;
    const isPossible = message_count >= least && message_count <= least + 2 * this.#erased;
    if (isPossible && (this.#isLastErased || last_speaker === last)) return;
    yield problemsOf(name)(
      'messages-differ',
      null,
      `the recorded number of messages of '${name}' differs from that of its entries`,
    );
  }
}

/** Whose message a stored entry is. The store writes the role of a message first, so that few are parsed. */
function storedSpeaker({ kind, meta, payload }: SaidEntry): Speaker | undefined {
  if (payload === null) return undefined;
  const known = /^\{"role":"(user|assistant)",/.exec(payload)?.[1];
  return speakerOf({
    kind,
    payload: known === undefined ? parsed(payload) : { role: known },
    ...(/"(?:context|again)"/.test(meta ?? '') && { meta: parsed(meta) }),
  });
}

/** Counts the messages of a tape anew from its entries, in the caller's transaction. */
export function rebuildConversation(db: Db, { id }: Pick<TapeRow, 'id'>): void {
  const conversation = new ConversationOnTape();
  for (let after = -1; ; ) {
    const rows = db.all<SaidEntry>(
      `SELECT seq, kind, payload, meta FROM entry WHERE tape_id = @id AND seq > @after AND kind = 'message'
         ORDER BY seq LIMIT 500`,
      { id, after },
    );
    for (const row of rows) conversation.saw(row);
    if (rows.length < 500) break;
    after = rows.at(-1)?.seq ?? after;
  }
  db.run('UPDATE tape SET message_count = @message_count, last_speaker = @last_speaker WHERE id = @id', {
    id,
    ...conversation.found,
  });
}
