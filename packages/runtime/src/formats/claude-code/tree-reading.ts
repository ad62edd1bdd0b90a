import type { Draft } from '@tapedeck/tape';
import { type Answers, type ResultRecords, resultsById } from './answers.ts';
import type { ByRecord } from './by-record.ts';
import type { SpokenTurn } from './conversation.ts';
import { type Message, messageIn } from './message.ts';
import type { CodeRecord } from './records.ts';
import { type AnswerRecords, answerRecordsOf, type ModelTurn } from './turns.ts';

/**
 * What the ways through a tree have in common: each message is read once, and the drafts of a turn are the same objects on each
 * way that has it.
 */
export class TreeReading {
  readonly #records: readonly CodeRecord[];
  readonly #isShared: boolean;
  #answers: AnswerRecords | undefined;
  #results: ResultRecords | undefined;
  readonly #messages = new Map<string, { readonly message: Message; readonly own: readonly string[] }>();
  readonly #drafts = new Map<string, readonly Draft[]>();

  /** @param ways how many there are: with one, nothing is kept */
  constructor(records: readonly CodeRecord[], ways: number) {
    this.#records = records;
    this.#isShared = ways > 1;
  }

  /** The records of all answers. */
  get answers(): AnswerRecords {
    this.#answers ??= answerRecordsOf(this.#records);
    return this.#answers;
  }

  /** The records of answers that are not on a way, and perhaps others. */
  answersBeside(way: Pick<ByRecord<true>, 'has'>): AnswerRecords {
    return this.#isShared ? this.answers : answerRecordsOf(this.#records, way);
  }

  get results(): ResultRecords {
    const results = this.#results ?? resultsById(this.#records);
    if (this.#isShared) this.#results = results;
    return results;
  }

  /** The message of a turn. `claimed`: the ids of the calls before it, to which its own are added. */
  message(turn: ModelTurn, claimed: Set<string>): Message {
    if (!this.#isShared) return messageIn(turn, claimed);
    const mark = marksOf(turn.members);
    const known = this.#messages.get(mark);
    if (known !== undefined && !known.own.some((id) => claimed.has(id))) {
      for (const id of known.own) claimed.add(id);
      return known.message;
    }
    const own: string[] = [];
    let isRepeated = false;
    const message = messageIn(turn, {
      has: (id) => {
        const has = claimed.has(id);
        isRepeated ||= has;
        return has;
      },
      add: (id) => {
        own.push(id);
        claimed.add(id);
      },
    });
    if (!isRepeated) this.#messages.set(mark, { message, own });
    return message;
  }

  /** The drafts of a turn, made once of what says the same. `more`: what else they are made of. */
  drafts(
    turn: SpokenTurn,
    { byCall, records }: Answers,
    more: string,
    make: () => readonly Draft[],
  ): readonly Draft[] {
    if (!this.#isShared) return make();
    const mark = `${turn.kind} ${more} ${
      turn.kind === 'assistant'
        ? [
            marksOf(turn.members),
            ...turn.message.calls.map((call) => {
              const { record, at } = byCall.get(call) ?? {};
              return `${call.record.ordinal} ${call.toolCallId} ${record?.ordinal} ${at}`;
            }),
            marksOf(turn.message.rest),
          ].join('|')
        : `${turn.record.ordinal} ${turn.summary?.ordinal} ${records.get(turn.record)?.join()}`
    }`;
    const known = this.#drafts.get(mark);
    if (known !== undefined) return known;
    const made = make();
    this.#drafts.set(mark, made);
    return made;
  }
}

function marksOf(records: readonly CodeRecord[]): string {
  return records.map(({ ordinal }) => ordinal).join();
}
