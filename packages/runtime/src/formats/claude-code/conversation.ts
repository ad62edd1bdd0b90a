import type { Answers } from './answers.ts';
import type { Message } from './message.ts';
import type { CodeRecord } from './records.ts';
import type { ModelTurn, RecordTurn } from './turns.ts';

/** An assistant turn with its message, or a record of another kind. */
export type SpokenTurn = (ModelTurn & { readonly message: Message }) | RecordTurn;

/** The turns of a path in order, and the records beside them. */
export interface Conversation {
  readonly turns: readonly SpokenTurn[];
  readonly answers: Answers;
  /** Records that are neither on the path nor part of a message on it, in file order. */
  readonly beside: readonly CodeRecord[];
}
