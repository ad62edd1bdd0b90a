import type { Worker } from '../run/worker.ts';

/** How many workers are kept for sessions that do nothing. They know what was read once of their sessions. */
const unusedMax = 100;

/**
 * The workers of a deck, one for each session that it uses. Those of sessions that do nothing are dropped, the ones
 * that were used longest ago first: a deck that is open for weeks runs any number of sessions. So each act looks its worker
 * up, and no field keeps one.
 */
export class Workers {
  readonly #make: (session: { readonly name: string; readonly id: string }) => Worker;
  /** In the order in which acts last used them. */
  readonly #workers = new Map<string, Worker>();
  /** How many there may be before those that are not in use are looked for. */
  #most = 2 * unusedMax;

  constructor(make: (session: { readonly name: string; readonly id: string }) => Worker) {
    this.#make = make;
  }

  /** The worker of a session, until it is not in use. */
  of(session: { readonly name: string; readonly id: string }): Worker {
    const known = this.#workers.get(session.id);
    const worker = known ?? this.#make(session);
    if (known === undefined) this.#drop();
    else this.#workers.delete(session.id);
    this.#workers.set(session.id, worker);
    return worker;
  }

  /** Those of all sessions in use, and of others. */
  all(): readonly Worker[] {
    return [...this.#workers.values()];
  }

  #drop(): void {
    if (this.#workers.size < this.#most) return;
    const unused = [...this.#workers].flatMap(([id, worker]) => (worker.isInUse ? [] : [id]));
    for (const id of unused.slice(0, Math.max(0, unused.length - unusedMax))) this.#workers.delete(id);
    // Those in use are not looked through for each new one.
    this.#most = 2 * Math.max(unusedMax, this.#workers.size);
  }
}
