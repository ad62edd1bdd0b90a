import { setTimeout as sleep } from 'node:timers/promises';
import type { SessionInfo } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { isBlocked, isDone } from '../merge/spawn-calls.ts';
import type { RunSpec } from './engine.ts';
import type { RunEnd } from './outcome.ts';
import type { DelegationParts } from './parts.ts';
import { settle } from './settle.ts';

/** How often the tapes are looked at, while anything is written, in milliseconds. */
const pollMs = 100;
/** The longest time between two looks, where one takes long: of a thousand children, say. */
const pollMaxMs = 1_000;
/** How often a child that has written nothing is started again, which does nothing while it is queued or runs. */
const startAgainMs = 5_000;

/** A child that others run. */
interface Awaited {
  readonly run: RunSpec & { readonly order: NonNullable<RunSpec['order']> };
  readonly signal: AbortSignal;
  readonly resolve: (end: RunEnd) => void;
  /** Where its tape ended when it was looked at last, and since when. */
  head: number;
  since: number;
}

/**
 * Waits for children of one session that run in other processes. Their ends are read from their tapes: from one list of
 * all of them, after something was written.
 */
export class ChildrenElsewhere {
  readonly #parts: DelegationParts;
  readonly #awaited = new Map<string, Awaited>();
  #isWatching = false;

  constructor(parts: DelegationParts) {
    this.#parts = parts;
  }

  /** Resolves when the child has ended, waits for an answer, or this process no longer waits for it. */
  async end(run: Awaited['run'], signal: AbortSignal): Promise<RunEnd> {
    const { promise, resolve } = Promise.withResolvers<RunEnd>();
    this.#awaited.set(run.order.session, { run, signal, resolve, head: -1, since: performance.now() });
    if (!this.#isWatching) void this.#watch();
    return await promise;
  }

  async #watch(): Promise<void> {
    const { store, closing } = this.#parts;
    this.#isWatching = true;
    let seen: number | undefined;
    for (let lookedAt = 0; this.#awaited.size > 0 && !closing.aborted; ) {
      const began = performance.now();
      try {
        const now = await store.changes();
        const isDue = began - lookedAt > startAgainMs;
        if (now !== seen || isDue || this.#isAborted()) {
          seen = now;
          lookedAt = began;
          await this.#look();
        }
      } catch {
        // The database is away for a while: the tapes say later what happened.
        seen = undefined;
      }
      await sleep(Math.min(pollMaxMs, Math.max(pollMs, 4 * (performance.now() - began))));
    }
    this.#isWatching = false;
    for (const [id, { resolve }] of this.#awaited) {
      this.#awaited.delete(id);
      resolve({ error: 'the deck was closed', code: 'SESSION_CLOSED', closed: true });
    }
  }

  #isAborted(): boolean {
    return [...this.#awaited.values()].some(({ signal }) => signal.aborted);
  }

  async #look(): Promise<void> {
    const { store } = this.#parts;
    const owned = new Set((await store.leases.list()).map(({ id }) => id));
    const parents = new Set([...this.#awaited.values()].map(({ run }) => run.order.parent));
    for (const parent of parents)
      for (const info of await store.sessions.list({ parent, all: true })) {
        const awaited = this.#awaited.get(info.id);
        const end = awaited === undefined ? undefined : await this.#endOf(awaited, info, owned.has(info.id));
        if (end === undefined) continue;
        this.#awaited.delete(info.id);
        awaited?.resolve(end);
      }
  }

  /** How a child ended; undefined while it goes on. */
  async #endOf(awaited: Awaited, info: SessionInfo, isOwned: boolean): Promise<RunEnd | undefined> {
    const { store } = this.#parts;
    const { run, signal } = awaited;
    const { message } = run.order;
    if (await isDone(store, info, message)) return await this.#ended(info);
    if (info.delivery === 'discarded') return {};
    if (info.lifecycle !== 'active')
      return { error: `'${info.session}' was archived`, code: 'TAPE_ARCHIVED', closed: true };
    // A process that ends leaves its children to others.
    if (signal.aborted && !this.#parts.closing.aborted) {
      // Its owner gets a notice. One that has no owner ends here, so that the process that takes its run finds it ended.
      if (isOwned) await this.#parts.engine.cancel(run.order.session, message?.key);
      else await settle(this.#parts, info, { abort: 'by parent', ...(message !== undefined && { message }) });
      return undefined;
    }
    const now = performance.now();
    if (!isOwned && info.settled !== info.head && (await isBlocked(store, info))) return { waits: true };
    if (isOwned || info.head !== awaited.head) Object.assign(awaited, { head: info.head, since: now });
    if (now - awaited.since > startAgainMs) {
      awaited.since = now;
      await this.#parts.engine.start(run);
    }
    return undefined;
  }

  async #ended(info: SessionInfo): Promise<RunEnd> {
    const error = info.task === 'failed' ? await this.#failure(info) : undefined;
    return { row: info, ...(error !== undefined && { error }) };
  }

  /** Why a child failed, as its tape says. */
  async #failure({ id }: SessionInfo): Promise<string | undefined> {
    const notes = this.#parts.store.entries.read(id, {
      own: true,
      kind: 'event',
      name: 'run/error',
      last: 1,
    });
    for await (const { payload } of notes)
      if (isObject(payload) && typeof payload.message === 'string') return payload.message;
    return undefined;
  }
}
