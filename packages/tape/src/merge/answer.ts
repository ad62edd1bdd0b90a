import { clientCalls } from '../entry/client-calls.ts';
import type { Entry, Seq } from '../entry/entry.ts';
import { isObject, type Json } from '../entry/json.ts';

/** A text of a child, and the position of its last piece. */
export interface FoundText {
  readonly seq: Seq;
  readonly text: string;
}

/** The last answer of a child: the text of all its pieces. */
export interface FoundAnswer extends FoundText {
  /** The first piece; the same as `seq` for an answer that was not interrupted. */
  readonly from: Seq;
  /** Pieces of interrupted answers before it that are not part of the text, in ascending order. */
  readonly rest: readonly Seq[];
}

/** What is known of the answers of a child up to an entry. */
export interface Answers {
  readonly last?: FoundAnswer;
  /** The pieces of an answer that was interrupted and has no end yet. */
  readonly pieces: readonly FoundText[];
  /** Pieces of that answer that an earlier merge delivered. */
  readonly merged: readonly Seq[];
  /** Pieces that cannot be joined with what follows, because something else stands between. */
  readonly rest: readonly Seq[];
}

/** The state before the first entry. */
export const noAnswers: Answers = { pieces: [], merged: [], rest: [] };

/**
 * Returns the answers up to and including an entry. An answer with `meta.partial` was interrupted: the next
 * answer continues it, and the two are one text, unless a message, a call or a result stands between. An
 * answer that begins with the pieces before it has started again, and stands for them. Pure.
 */
export function afterEntry(answers: Answers, { kind, payload, meta, seq }: Entry): Answers {
  if (kind !== 'message' && kind !== 'tool-result') return answers;
  const { last, pieces, merged, rest } = answers;
  if (!isObject(payload) || payload.role !== 'assistant')
    return { ...answers, pieces: [], merged: [], rest: [...rest, ...seqsOf(pieces)] };
  const isPartial = meta.partial === true;
  const said = assistantText(payload);
  if (said.trim() === '') return isPartial ? answers : { ...noAnswers, ...(last !== undefined && { last }) };
  const before = pieces.map(({ text }) => text).join('');
  const joined = said.startsWith(before) ? [] : pieces;
  const text = said.startsWith(before) ? said : before + said;
  const answer = { seq, text, from: joined[0]?.seq ?? seq, rest: [...merged, ...rest] };
  if (!isPartial) return { ...noAnswers, last: answer };
  const held = [...joined, { seq, text: said }];
  if (clientCalls(payload).length === 0) return { last: answer, pieces: held, merged, rest };
  return { last: answer, pieces: [], merged: [], rest: [...rest, ...seqsOf(held)] };
}

/**
 * The state at the beginning of a range, from the state at the end of the entries before it. An answer that
 * was interrupted there goes on in the range; its pieces were delivered before. Pure.
 */
export function atRangeStart({ pieces }: Answers): Answers {
  return { ...noAnswers, merged: seqsOf(pieces) };
}

function seqsOf(pieces: readonly FoundText[]): readonly Seq[] {
  return pieces.map(({ seq }) => seq);
}

/** The text parts of an assistant message, joined; empty for any other payload. */
export function assistantText(payload: Json): string {
  if (!isObject(payload) || payload.role !== 'assistant' || !Array.isArray(payload.content)) return '';
  return payload.content
    .flatMap((part) => (isObject(part) && part.type === 'text' ? [String(part.text)] : []))
    .join('');
}
