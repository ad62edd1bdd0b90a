import type { Draft, Entry, HomeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { isOfImport, keyOf, requestOf } from './imported.ts';
import type { ConversationPlan } from './plan.ts';

/** The messages of a session in which its first answer is looked for. */
const answerWithin = 50;

/** So many of them are read at once: one may have many MB, and the answer is usually among the first two. */
const step = 2;

/** The first answer of a model. Pure. */
export function firstAnswer<T extends Pick<Draft, 'kind' | 'payload'>>(messages: Iterable<T>): T | undefined {
  for (const one of messages)
    if (one.kind === 'message' && isObject(one.payload) && one.payload.role === 'assistant') return one;
  return undefined;
}

/** The first answer of a model in a session, unless many messages precede it. */
export function firstAnswerIn(store: HomeStore, id: string): Entry | undefined {
  let from = 1;
  for (let read = 0; read < answerWithin; read += step) {
    const messages = [...store.entries.read(id, { kind: 'message', from, limit: step })];
    const answer = firstAnswer(messages);
    const last = messages.at(-1);
    if (answer !== undefined || last === undefined) return answer;
    from = last.seq + 1;
  }
  return undefined;
}

/** What an answer is known by in all copies of it: its request or, where its record names none, its key. Pure. */
export function answerId(answer: Pick<Draft, 'meta' | 'key'>): string {
  return requestOf(answer) ?? keyOf(answer);
}

/** The key of the first message of an import. */
export function firstKey(store: HomeStore, id: string): string | undefined {
  const [first] = store.entries.read(id, { kind: 'message', limit: 1 });
  return first !== undefined && isOfImport(first) ? keyOf(first) : undefined;
}

/** The key of the first message of a conversation. */
export function firstKeyIn({ spine }: Pick<ConversationPlan, 'spine'>): string | undefined {
  return spine.find(({ kind }) => kind === 'message')?.key;
}
