/**
 * Raw traffic: what models were sent and what they answered, as the packages of their providers have it, in a file of each
 * session. `traffic.ts` observes the models of a deck, `observed-model.ts` passes on their calls, `observed-call.ts`
 * collects one, `lines.ts` makes lines of it, `covered.ts` takes secrets out of what came in pieces, and `file.ts`
 * appends. A call waits for none of this, and no fault of it reaches a run. Imports `model` and `errors`.
 */
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { Secret } from '@tapedeck/tape';
import { maskFor, type Redactor } from '@tapedeck/tape/internal';
import { messageOf } from '../errors.ts';
import { modelMeta } from '../model/model.ts';
import type { ModelObject } from '../model/with-calls.ts';
import type { Cover } from './covered.ts';
import { appendLines } from './file.ts';
import { linesOf } from './lines.ts';
import { ObservedCall } from './observed-call.ts';
import { observedModel } from './observed-model.ts';

/** Calls that may wait to be written. With one more, that one is left out. */
const waitingMax = 200;

/** How long the end of a run, and of a deck, waits for what is not written yet, in milliseconds. */
const [runWaitMs, closeWaitMs] = [2_000, 5_000];

interface Session {
  readonly name: string;
  readonly id: string;
}

interface Means {
  /** Undefined for a deck on a store alone: nothing can be kept then. */
  readonly home: string | undefined;
  readonly secrets: readonly Secret[];
  readonly redactor: Redactor | undefined;
  readonly newId: () => string;
  readonly now: () => number;
  /** Called once for a session, until its traffic can be kept again. */
  readonly onFailure: (session: Session, message: string) => void;
}

/** Keeps the raw traffic of the sessions of a deck. */
export class RawTraffic {
  readonly #means: Means;
  readonly #cover: Cover;
  readonly #open = new Set<ObservedCall>();
  readonly #failing = new Set<string>();
  #writing: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(means: Means) {
    this.#means = means;
    this.#cover = coverOf(means);
  }

  /** The model for the calls of a session, whose traffic is kept. */
  observed<M extends ModelObject>(session: Session, model: M): M {
    const { newId, now } = this.#means;
    return observedModel(model, {
      begin: (options) => {
        const { provider, model: name } = modelMeta(model);
        const call = new ObservedCall({ id: newId(), session, provider, model: name, options }, now);
        this.#open.add(call);
        return call;
      },
      ended: (call) => {
        if (this.#open.delete(call)) this.#add(call);
      },
    });
  }

  /** Waits until what has ended is written, but not for long: a slow disk holds up no run. */
  async settle(ms: number = runWaitMs): Promise<void> {
    const over = new AbortController();
    await Promise.race([this.#writing, sleep(ms, undefined, { signal: over.signal }).catch(() => {})]);
    over.abort();
  }

  /** Writes what is left, also of calls whose answer is not read to its end. */
  async close(): Promise<void> {
    for (const call of this.#open) {
      call.over('cut');
      this.#add(call);
    }
    this.#open.clear();
    await this.settle(closeWaitMs);
  }

  #add(call: ObservedCall): void {
    const { session } = call.head;
    if (this.#waiting >= waitingMax) {
      this.#fail(session, 'models are faster than the disk');
      return;
    }
    this.#waiting += 1;
    this.#writing = this.#writing.then(async () => {
      try {
        // What the call is part of goes on first.
        await setImmediate();
        const { home } = this.#means;
        if (home === undefined) throw new Error('the deck has a store and no home');
        await appendLines(home, session.id, linesOf(call, this.#cover));
        this.#failing.delete(session.id);
      } catch (error) {
        this.#fail(session, messageOf(error));
      }
      this.#waiting -= 1;
    });
  }

  #fail(session: Session, why: string): void {
    if (this.#failing.has(session.id)) return;
    this.#failing.add(session.id);
    this.#means.onFailure(session, `cannot keep the raw traffic of '${session.name}': ${why}`);
  }
}

function coverOf({ secrets, redactor }: Means): Cover {
  const mask = maskFor(secrets);
  return (value) => {
    const masked = mask?.value(value) ?? value;
    return redactor?.whole(masked).value ?? masked;
  };
}
