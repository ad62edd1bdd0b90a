import type { Draft, Entry, HomeStore, Seq } from '@tapedeck/tape';
import { isObject, storedTexts } from '@tapedeck/tape/internal';
import { wholeDraft } from '../plan/later-draft.ts';
import type { ConversationPlan } from '../plan/plan.ts';
import { requestOf } from './api-call.ts';
import { isErased } from './erased.ts';
import { isOfImport } from './imported.ts';
import { keyOf } from './keys.ts';
import { recalled } from './recalled.ts';
import { shortHash } from './short-hash.ts';

/** The messages of a session in which its first answer is looked for. */
const answerWithin = 50;

/** So many of them are read at once: one may have many MB, and the answer is usually among the first two. */
const step = 2;

/** The first answer of a model. Pure. */
export function firstAnswer<T extends Pick<Draft, 'kind' | 'payload' | 'meta'>>(
  messages: Iterable<T>,
): T | undefined {
  for (const one of messages) if (one.kind === 'message' && isAnswer(one)) return one;
  return undefined;
}

/** Whether a message is an answer: of one that was erased, its request is left. */
function isAnswer(message: Pick<Draft, 'payload' | 'meta'>): boolean {
  const { payload } = message;
  return isObject(payload) ? payload.role === 'assistant' : requestOf(message) !== undefined;
}

/**
 * The first message that a session shows, and the first answer of a model, unless many messages precede that.
 * @param isRewound false where nothing that the session has was ever rewound
 * @param behind the position from which they are looked for: the first one unless given
 */
export function firstShownIn(
  store: HomeStore,
  id: string,
  { isRewound = true, behind = 1 }: { readonly isRewound?: boolean; readonly behind?: Seq } = {},
): { readonly message?: Entry | undefined; readonly answer?: Entry | undefined } {
  let message: Entry | undefined;
  let read = 0;
  for (const { from, to } of shownRanges(store, id, isRewound))
    for (let at = Math.max(from, behind); at <= to && read < answerWithin; read += step) {
      const messages = [
        ...recalled(store, id, store.entries.read(id, { kind: 'message', from: at, to, limit: step })),
      ];
      message ??= messages[0];
      const answer = firstAnswer(messages);
      if (answer !== undefined) return { message, answer };
      at = (messages.at(-1)?.seq ?? to) + 1;
    }
  return { message };
}

/** The messages of a session that no rewind hides. Lazy. */
export function* shownMessages(store: HomeStore, id: string): Generator<Entry> {
  for (const range of shownRanges(store, id, true))
    yield* store.entries.read(id, { kind: 'message', ...range });
}

/** The positions of a session that no rewind hides. */
function shownRanges(
  store: HomeStore,
  id: string,
  isRewound: boolean,
): readonly { readonly from: Seq; readonly to: Seq }[] {
  const ranges: { from: Seq; to: Seq }[] = [];
  let to = store.sessions.find(id)?.head ?? 0;
  const rewinds = isRewound ? [...store.entries.read(id, { kind: 'rewind' })] : [];
  for (const { seq, ref = 0 } of rewinds.reverse()) {
    // One that is hidden itself hides nothing.
    if (seq > to) continue;
    ranges.push({ from: seq + 1, to });
    to = ref;
  }
  return [...ranges, { from: 1, to }].reverse();
}

/**
 * What an entry says and when, which is the same in all copies of it, whatever ids these have. Compactions are numbered in each
 * session from its beginning: their names tell nothing. Pure.
 */
export function sayingOf(entry: Entry): string {
  return saying(entry, isErased(entry) ? erased : JSON.stringify(entry.payload));
}

/** The same of a draft, by its payload as it is stored: of one that becomes several entries it has none. Pure. */
export function sayingIn(draft: Draft): string {
  const whole = wholeDraft(draft);
  return saying(whole, storedTexts(whole)?.payload ?? '');
}

/** The same of a draft, as it is left once its content is erased; undefined where that does not tell it from others. Pure. */
export function sayingLeft(draft: Draft): string | undefined {
  const whole = wholeDraft(draft);
  return whole.meta?.timestamp === undefined ? undefined : saying(whole, erased);
}

/** The content of what was erased. */
const erased = 'null';

function saying({ kind, name, mark, meta }: Omit<Draft, 'payload'>, payload: string): string {
  const known = [kind, mark === 'boundary' ? undefined : name, mark, meta?.timestamp, meta?.requestId];
  return `${JSON.stringify(known)}\n${mark === 'boundary' ? summaryIn(payload) : payload}`;
}

/** What a compaction says: earlier versions wrote beside it what the tool notes of it. */
function summaryIn(payload: string): string {
  const value: unknown = payload === '' ? undefined : JSON.parse(payload);
  const state = isObject(value) ? value.state : undefined;
  return JSON.stringify(isObject(state) ? state.summary : undefined) ?? '';
}

/** What that is known by. Pure. */
export function saidBy(entry: Entry): string {
  return digestOf(sayingOf(entry));
}

/** The same of a draft. Pure. */
function saidIn(draft: Draft): string {
  return digestOf(sayingIn(draft));
}

/** What a draft may be known by: as it is, or as it is left once its content is erased. Pure. */
export function waysOf(draft: Draft): readonly string[] {
  const left = sayingLeft(draft);
  return [saidIn(draft), ...(left === undefined ? [] : [digestOf(left)])];
}

function digestOf(said: string): string {
  return shortHash(said);
}

/** What a compaction is known by in all copies of it: what it says or, where its source does not say when, its key. Pure. */
export function compactionOf(entry: Entry): string {
  return entry.meta.timestamp === undefined ? keyOf(entry) : saidBy(entry);
}

/** The same of a draft. Pure. */
export function compactionIn(draft: Draft): string {
  return draft.meta?.timestamp === undefined ? keyOf(draft) : saidIn(draft);
}

/** When a compaction was made: what all copies of it have in common with few others. Pure. */
export function compactedWhen(compaction: Pick<Draft, 'meta' | 'key'>): string {
  const { timestamp } = compaction.meta ?? {};
  return timestamp === undefined ? keyOf(compaction) : String(timestamp);
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
