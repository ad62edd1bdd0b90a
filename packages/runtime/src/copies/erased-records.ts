import type { Entry, HomeStore, Json, JsonObject, Seq } from '@tapedeck/tape';
import { requestOf } from '../imported/api-call.ts';
import { isOfImport } from '../imported/imported.ts';
import { hasOwnId, keyOf } from '../imported/keys.ts';
import type { SessionFacts } from '../imported/session-facts.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import { type ConversationPlan, isAside, type SaidIn } from '../plan/plan.ts';

/** An entry that was erased, and what its redaction has left of it. */
interface Erased {
  readonly id: string;
  readonly seq: Seq;
  readonly requestId: Json | undefined;
}

/** What is beside an entry, or a draft. */
interface Beside {
  readonly time: Json;
  readonly isAnswer: boolean;
}

/** Between two entries of a conversation there are seldom more that are none. */
const near = 10;

/**
 * What was erased in the sessions of a home, by when their sources had said it. A record that was said at the same time is the
 * same one where it has its id, its request or its compaction, where one beside it was said at the same time, too, or where both
 * begin a conversation, of subagents the same one, and have not different answers.
 */
export class ErasedRecords {
  readonly #store: HomeStore;
  readonly #byTime = new Map<string, readonly Erased[]>();
  /** What is left of each that says when it was said. */
  readonly #left = new Map<string, JsonObject>();
  /** From which conversation each session came that has one. */
  readonly #conversations = new Map<string, string>();
  /** The keys of those of which nothing says when, as far as no other record has them. */
  readonly #keys = new Set<string>();
  /** How many redactions of each session were taken. */
  readonly #taken = new Map<string, number>();

  constructor(store: HomeStore) {
    this.#store = store;
  }

  get isEmpty(): boolean {
    return this.#byTime.size === 0 && this.#keys.size === 0;
  }

  /** Takes what the redactions in a session say by now: in one of a subagent, or a deleted one, they count as in any other. */
  take(id: string, { redactions, origin }: Pick<SessionFacts, 'redactions' | 'origin'>): void {
    for (const { ref, was = {}, key } of redactions.slice(this.#taken.get(id))) {
      const { timestamp, requestId } = was;
      if (typeof timestamp === 'string') {
        this.#byTime.set(timestamp, [...(this.#byTime.get(timestamp) ?? []), { id, seq: ref, requestId }]);
        this.#left.set(`${id} ${ref}`, was);
        this.#conversations.set(id, String(origin?.conversation));
      } else if (key !== undefined && hasOwnId(key)) this.#keys.add(key);
    }
    this.#taken.set(id, redactions.length);
  }

  /** Whether a part of a conversation may have something that was erased: what lies beside it in the source is not known. */
  mayHave({ spine, asides }: Pick<ConversationPlan, 'spine' | 'asides'>): boolean {
    const drafts = [...spine, ...asides.map(({ draft }) => draft)];
    return drafts.some(({ key = '', meta }) => this.hasKey(key) || this.#byTime.has(String(meta?.timestamp)));
  }

  /** Whether what a conversation has in a place was erased in one of the sessions. */
  has(conversation: SaidIn, place: number): boolean {
    const { spine } = conversation;
    const draft = spine[place];
    if (draft === undefined) return false;
    const { key = '', kind, mark, meta: { timestamp, requestId } = {} } = wholeDraft(draft);
    if (this.hasKey(key)) return true;
    const isIt = (one: Erased) => {
      if (one.requestId !== requestId) return false;
      const from = Math.max(1, one.seq - near);
      const around = [...this.#store.entries.read(one.id, { from, to: one.seq + near })].filter(
        (entry) => isOfImport(entry) && !isAside(entry),
      );
      const at = around.findIndex(({ seq }) => seq === one.seq);
      const entry = around[at];
      if (entry === undefined || entry.kind !== kind || entry.mark !== mark) return false;
      if (keyOf(entry) === key || requestId !== undefined || mark === 'boundary') return true;
      const isPrompt = kind === 'message' && isExact(timestamp);
      // What is beside a prompt, as a reminder is, may have been said with it.
      const reach = isPrompt ? near : 1;
      const beside = (step: -1 | 1) => [
        found(spine, { place, step, reach }, (next) => besideOf(wholeDraft(next).meta, timestamp)),
        found(around, { place: at, step, reach }, (next) => besideOf(this.#metaOf(one.id, next), timestamp)),
      ];
      const [before, after] = [beside(-1), beside(1)];
      const isSame = ([own, its]: readonly (Beside | undefined)[]) =>
        own !== undefined && own.time === its?.time;
      if ([before, after].some(isSame)) return true;
      // A prompt is answered once.
      const isOther = after.every((next) => next?.isAnswer === true);
      const isFirst = isPrompt && !isOther && before.every((next) => next === undefined);
      return isFirst && this.#isBeginning(one, { timestamp, of: conversation.key });
    };
    return this.#byTime.get(String(timestamp))?.some(isIt) === true;
  }

  /** Whether a record was erased under its own id, which no other record has, and of which nothing says when it was said. */
  hasKey(key: string): boolean {
    return this.#keys.has(key);
  }

  #metaOf(id: string, { meta, seq }: Entry): JsonObject {
    return meta.timestamp === undefined ? (this.#left.get(`${id} ${seq}`) ?? meta) : meta;
  }

  /**
   * Whether no message of a session precedes an entry but of the same time. Subagents that are started at once begin at one time:
   * of one, the session has to be that of the same.
   */
  #isBeginning(
    { id, seq }: Erased,
    { timestamp, of }: { readonly timestamp: Json | undefined; readonly of: string },
  ): boolean {
    const isAgent = this.#store.sessions.find(id)?.kind !== 'session';
    if (isAgent && ownPart(this.#conversations.get(id) ?? '') !== ownPart(of)) return false;
    for (const entry of this.#store.entries.read(id, { kind: 'message', to: seq - 1 }))
      if (this.#metaOf(id, entry).timestamp !== timestamp) return false;
    return true;
  }
}

/** What says when something beside another one was said, unless it was at the same time: that tells nothing where all records have it. */
function besideOf(meta: JsonObject | undefined, timestamp: Json | undefined): Beside | undefined {
  const { timestamp: time } = meta ?? {};
  if (meta === undefined || time === undefined || time === timestamp) return undefined;
  return { time, isAnswer: requestOf({ meta }) !== undefined };
}

/** What the key of a subagent has of its own, behind that of its session: a copy of that has another. */
function ownPart(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1).replace(/#\d+$/, '');
}

/** What is found first of the elements before or behind a place. */
function found<T, R>(
  list: readonly T[],
  { place, step, reach }: { readonly place: number; readonly step: -1 | 1; readonly reach: number },
  of: (one: T) => R | undefined,
): R | undefined {
  for (let i = 1; i <= reach; i += 1) {
    const one = list[place + i * step];
    const value = one === undefined ? undefined : of(one);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Whether a time tells one prompt from others: where a tool writes whole seconds, several have the same. */
function isExact(timestamp: Json | undefined): boolean {
  return typeof timestamp === 'string' && /\.\d*[1-9]/.test(timestamp);
}
