import { type Draft, note, type SqliteTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { commonOf, spineOf } from './change.ts';
import { importedIn, keyOf, requestOf } from './imported.ts';
import type { ConversationPlan, ImportPlan } from './plan.ts';
import { text } from './text.ts';

/** The event of a session whose source names the session of which its beginning is a copy. */
export const copyEvent = 'import/copy-of';

/**
 * The main conversations of a home by the key of their first message, and those that are copies by what they are copies of.
 * A copy begins with the records of its source, so that either finds the other, whichever was imported first.
 */
class Copies {
  readonly #store: SqliteTapeStore;
  /** Those that begin with a message, and those that have none yet, by their ULIDs. */
  readonly #byFirst = new Map<string, Set<string>>();
  readonly #empty = new Set<string>();
  /** Those by the request of their first answer, and those that have no answer yet. */
  readonly #byRequest = new Map<string, Set<string>>();
  readonly #unanswered = new Set<string>();
  readonly #of = new Map<string, Set<string>>();
  /** The last line of the lineage that was read. */
  #g = 0;

  constructor(store: SqliteTapeStore) {
    this.#store = store;
  }

  /** The main conversations whose first message has a key. */
  beginningWith(key: string): Iterable<string> {
    this.#readOn();
    return this.#byFirst.get(key) ?? [];
  }

  /** The main conversations whose first answer is that to a request. */
  answeredFirst(request: string): Iterable<string> {
    this.#readOn();
    return this.#byRequest.get(request) ?? [];
  }

  /** The sessions that say that they are copies of a session of a tool. */
  of(session: string): Iterable<string> {
    this.#readOn();
    return this.#of.get(session) ?? [];
  }

  /** Whether a session names the one of which it is a copy, and that is here. */
  isPlaced(id: string): boolean {
    return [...this.#of].some(([of, ids]) => ids.has(id) && this.#store.sessions.find(of) !== undefined);
  }

  add(of: string, id: string): void {
    put(this.#of, of, id);
  }

  #readOn(): void {
    const fresh = new Set(this.#empty);
    const types = ['session', 'fork'] as const;
    for (const { g, session } of this.#store.lineage.read({ from: this.#g + 1, types })) {
      this.#g = g;
      if (isMain(this.#store, session) && continuedFrom(this.#store, session) === undefined)
        fresh.add(session);
    }
    for (const id of fresh) {
      // The keys that it inherits are not those of its source.
      const first = isResumed(this.#store, id) ? '' : firstKey(this.#store, id);
      if (first === undefined) this.#empty.add(id);
      else {
        this.#empty.delete(id);
        put(this.#byFirst, first, id);
      }
      this.#readCopy(id);
      this.#unanswered.add(id);
    }
    for (const id of this.#unanswered) {
      const answer = firstAnswer(this.#store.entries.read(id, { kind: 'message', limit: answerWithin }));
      if (answer === undefined) continue;
      this.#unanswered.delete(id);
      const request = requestOf(answer);
      if (request !== undefined) put(this.#byRequest, request, id);
    }
  }

  #readCopy(id: string): void {
    for (const { payload } of this.#store.entries.read(id, { own: true, name: copyEvent }))
      if (isObject(payload) && typeof payload.session === 'string') this.add(payload.session, id);
  }
}

/** The messages of a session in which its first answer is looked for. */
const answerWithin = 50;

/** The first answer of a model. Pure. */
export function firstAnswer<T extends Pick<Draft, 'kind' | 'payload'>>(messages: Iterable<T>): T | undefined {
  for (const one of messages)
    if (one.kind === 'message' && isObject(one.payload) && one.payload.role === 'assistant') return one;
  return undefined;
}

function put(map: Map<string, Set<string>>, key: string, id: string): void {
  const ids = map.get(key) ?? new Set();
  map.set(key, ids.add(id));
}

const known = new WeakMap<SqliteTapeStore, Copies>();

/** What is known of the copies in a home. It is read once, and then as far as the lineage has grown. */
export function copiesIn(store: SqliteTapeStore): Copies {
  const found = known.get(store) ?? new Copies(store);
  known.set(store, found);
  return found;
}

/** The key of the first message of an import. */
export function firstKey(store: SqliteTapeStore, id: string): string | undefined {
  const [first] = store.entries.read(id, { kind: 'message', limit: 1 });
  return first?.meta.source === 'import' ? keyOf(first) : undefined;
}

/** The event of a session that begins with another one's entries under other ids. */
const resumedEvent = 'import/resumed';

/** Says that a session was resumed from another one, by the id of that. */
export function resumedNote(session: string): Draft {
  return { ...note(resumedEvent, { session }), key: 'import:resumed' };
}

/** Whether a session is a fork of one that it has under other ids. */
export function isResumed(store: SqliteTapeStore, id: string): boolean {
  return [...store.entries.read(id, { own: true, name: resumedEvent, limit: 1 })].length > 0;
}

/** The event of a session that another program went on with: it is a fork of what was exported, and a copy of none. */
const continuedEvent = 'import/continued';

/** Says that a session continues an exported one, by the id of that. */
export function continuedNote(session: string): Draft {
  return { ...note(continuedEvent, { session }), key: 'import:continued' };
}

/** The session that another one continues, after an export; undefined for one that continues none. */
export function continuedFrom(store: SqliteTapeStore, id: string): string | undefined {
  const [event] = store.entries.read(id, { own: true, name: continuedEvent, limit: 1 });
  return isObject(event?.payload) ? text(event.payload.session) : undefined;
}

/** Whether a session is the main conversation of an import. */
function isMain(store: SqliteTapeStore, id: string): boolean {
  if (store.sessions.find(id) === undefined) return false;
  const [origin] = store.entries.read(id, { own: true, name: 'import/source', limit: 1 });
  return isObject(origin?.payload) && origin.payload.conversation === undefined;
}

/** The name of the session that a tool's own session is here. */
export function sessionOf(
  store: SqliteTapeStore,
  { format, session }: Pick<ImportPlan, 'format' | 'session'>,
): string | undefined {
  const name = store.sessions.find(session)?.session;
  if (name === undefined) return undefined;
  const [origin] = store.entries.read(name, { own: true, name: 'import/source', limit: 1 });
  return JSON.stringify(origin?.payload) === JSON.stringify({ format, session }) ? name : undefined;
}

/**
 * The sessions that count what a main conversation counts: its source and its copies, where the plan or they say so, and
 * those that begin with the same answer under another id.
 */
export function copiedIn(
  store: SqliteTapeStore,
  { format, session, copyOf }: Pick<ImportPlan, 'format' | 'session' | 'copyOf'>,
  { spine }: Pick<ConversationPlan, 'spine'>,
): readonly string[] {
  const copies = copiesIn(store);
  const source = copyOf === undefined ? undefined : sessionOf(store, { format, session: copyOf });
  const answer = firstAnswer(spine);
  const request = answer && requestOf(answer);
  return [
    ...(source === undefined ? [] : [source]),
    ...copies.of(session),
    ...(request === undefined ? [] : copies.answeredFirst(request)),
  ];
}

/**
 * The session with which a new main conversation has the longest beginning in common, by the keys and contents of its
 * entries: its source, or a copy of the same one. Of several, the one that its source names.
 */
export function beginsLike(
  store: SqliteTapeStore,
  { format, copyOf }: ImportPlan,
  conversation: ConversationPlan,
): string | undefined {
  const key = conversation.spine.find(({ kind }) => kind === 'message')?.key;
  const named = copyOf === undefined ? undefined : sessionOf(store, { format, session: copyOf });
  const { base } = conversation;
  const ids = [
    ...(key === undefined ? [] : copiesIn(store).beginningWith(key)),
    ...(base === undefined ? [] : continuing(store, base.session)),
  ];
  const others = ids.flatMap((id) => {
    const info = store.sessions.find(id);
    return info?.lifecycle === 'active' ? info.session : [];
  });
  let best: { readonly session: string; readonly common: number } | undefined;
  for (const session of new Set([...(named === undefined ? [] : [named]), ...others])) {
    const common = commonIn(store, conversation, session);
    if (common > (best?.common ?? 0)) best = { session, common };
  }
  return best?.session;
}

/** The main conversations of imports that were forked from an exported session: one of them may be a copy of another. */
function continuing(store: SqliteTapeStore, exported: string): readonly string[] {
  const parent = store.sessions.find(exported)?.session;
  return store.sessions
    .list()
    .flatMap((info) => (info.parent === parent && isMain(store, info.id) ? [info.id] : []));
}

function commonIn(store: SqliteTapeStore, conversation: ConversationPlan, session: string): number {
  return commonOf(conversation, spineOf(importedIn(store, session, conversation.base).shown));
}
