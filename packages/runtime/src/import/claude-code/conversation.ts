import { type Answers, answersOf } from './answers.ts';
import { type Message, messageOf } from './message.ts';
import { type Path, pathOf } from './path.ts';
import type { CodeRecord } from './records.ts';
import { type ModelTurn, type RecordTurn, turnsOf } from './turns.ts';

/** An assistant turn with its message, or a record of another kind. */
export type SpokenTurn = (ModelTurn & { readonly message: Message }) | RecordTurn;

/** The turns of a file in order, and the records beside them. */
export interface Conversation {
  readonly path: Path;
  readonly turns: readonly SpokenTurn[];
  readonly answers: Answers;
  /** Records that are neither on the path nor part of a message on it, in file order. */
  readonly beside: readonly CodeRecord[];
}

/** Finds the conversation in the records: the path, then messages, then the results of their calls. */
export function conversationOf(records: readonly CodeRecord[]): Conversation {
  const path = pathOf(records);
  const claimed = new Set<string>();
  const turns = turnsOf(path, records).map(
    (turn): SpokenTurn => (turn.kind === 'assistant' ? { ...turn, message: messageOf(turn, claimed) } : turn),
  );
  const spoken = turns.flatMap((turn) => (turn.kind === 'assistant' ? [turn] : []));
  const calls = spoken.flatMap(({ message }) => message.calls);
  const onPath = new Set(path.steps);
  const inMessages = new Set(spoken.flatMap(({ members }) => members));
  return {
    path,
    turns,
    answers: answersOf([{ calls, from: 0, to: Number.POSITIVE_INFINITY }], records, onPath),
    beside: records.filter((record) => !onPath.has(record) && !inMessages.has(record)),
  };
}
