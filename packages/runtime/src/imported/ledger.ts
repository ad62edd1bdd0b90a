import type { HomeStore, JsonObject, Seq } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { type ApiCall, answersOf, apiCallOf } from './api-call.ts';
import { type Counted, isOfImport, most } from './imported.ts';
import { keyOf } from './keys.ts';

/** An answer by its key, and when its source said it. */
interface Answer extends Pick<ApiCall, 'response'> {
  readonly key: string;
  readonly time: unknown;
}

/** What the own entries of a session counted. */
interface OwnCounts {
  readonly parentId: string | undefined;
  readonly counted: Map<string, JsonObject>;
  /** The answers to each request. */
  readonly answers: Map<string, readonly Answer[]>;
  /** How far its tape was read. */
  read: Seq;
}

/** The tokens that sessions counted. Each entry is read once, on the tape that has it. */
export class Ledger {
  readonly #store: HomeStore;
  readonly #own = new Map<string, OwnCounts>();

  constructor(store: HomeStore) {
    this.#store = store;
  }

  /** Reads what a session counted by now; undefined for one that is not there. */
  read(id: string): OwnCounts | undefined {
    const info = this.#store.sessions.find(id);
    if (info === undefined) return undefined;
    const { parentId, base, head } = info;
    const own = this.#own.get(id) ?? { parentId, counted: new Map(), answers: new Map(), read: base };
    this.#own.set(id, own);
    if (head <= own.read) return own;
    for (const entry of this.#store.entries.read(id, { from: own.read + 1, to: head })) {
      const { usage } = entry.meta;
      if (!isObject(usage) || !isOfImport(entry)) continue;
      const key = keyOf(entry);
      own.counted.set(key, most(own.counted.get(key), usage));
      const call = apiCallOf(entry);
      if (call === undefined) continue;
      const others: readonly Answer[] = own.answers.get(call.request) ?? [];
      const answer = { key, response: call.response, time: entry.meta.timestamp };
      own.answers.set(call.request, others.filter((one) => one.key !== key).concat([answer]));
    }
    own.read = head;
    return own;
  }

  /**
   * The tokens of the answer of a session to a call. A call that several answers have says nothing, as some proxies give one to
   * all; what the session inherits of the same time is the same answer under another id, or a part of it.
   */
  answerTo(id: string, call: ApiCall): JsonObject | undefined {
    const own = this.#own.get(id);
    const [answer, ...others] = answersOf(call, own?.answers.get(call.request));
    if (answer === undefined || others.length > 0) return undefined;
    const { key, response, time } = answer;
    for (let at = own; at?.parentId !== undefined; at = this.#own.get(at.parentId))
      for (const other of this.#own.get(at.parentId)?.answers.get(call.request) ?? []) {
        const isOther = other.key !== key && (other.time === undefined || other.time !== time);
        if (isOther && other.response === response) return undefined;
      }
    return own?.counted.get(key);
  }
}

/** What one session counted, by itself. */
export function countsOf(ledger: Ledger, id: string): Counted {
  const own = ledger.read(id);
  return { counted: (key) => own?.counted.get(key), answered: (call) => ledger.answerTo(id, call) };
}

/** What some sessions counted, by themselves. */
export class SharedCounts {
  readonly #ledger: Ledger;
  readonly #counted = new Map<string, JsonObject>();
  /** The sessions that have an answer to each request. */
  readonly #answers = new Map<string, readonly string[]>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Takes what a session counted by now. */
  add(id: string): void {
    const { counted, answers } = this.#ledger.read(id) ?? {};
    for (const [key, usage] of counted ?? []) this.#counted.set(key, most(this.#counted.get(key), usage));
    for (const request of answers?.keys() ?? []) {
      const ids: readonly string[] = this.#answers.get(request) ?? [];
      if (!ids.includes(id)) this.#answers.set(request, ids.concat([id]));
    }
  }

  /** As it counts for one of the sessions, whose own requests are no others' requests. */
  elsewhere(own: string | undefined): Counted {
    return {
      counted: (key) => this.#counted.get(key),
      answered: (call) => {
        let usage: JsonObject | undefined;
        for (const id of this.#answers.get(call.request) ?? []) {
          const one = id === own ? undefined : this.#ledger.answerTo(id, call);
          if (one !== undefined) usage = most(usage, one);
        }
        return usage;
      },
    };
  }
}

/** What several have counted; undefined where there are none. */
export function together(all: readonly Counted[]): Counted | undefined {
  if (all.length < 2) return all[0];
  const greatest = (of: (one: Counted) => JsonObject | undefined) =>
    all.reduce<JsonObject | undefined>((sum, each) => {
      const one = of(each);
      return one === undefined ? sum : most(sum, one);
    }, undefined);
  return {
    counted: (key) => greatest((one) => one.counted(key)),
    answered: (call) => greatest((one) => one.answered(call)),
  };
}
