import { processOwner } from '@tapedeck/tape';
import { type Hold, hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import type { DeckParts } from '../session/parts.ts';
import type { Session } from '../session/session.ts';
import { closeOrphans } from '../tools/orphans.ts';

/** The session whose tools are recorded. */
export interface ToolPlace {
  readonly parts: DeckParts;
  readonly session: Session;
}

/** The lease of a session while calls of tools run, which the calls of one answer share. */
export class ToolLease {
  readonly #place: ToolPlace;
  #running = 0;
  #held: Promise<Hold> | undefined;
  #released: Promise<unknown> = Promise.resolve();

  constructor(place: ToolPlace) {
    this.#place = place;
  }

  async take(): Promise<Hold> {
    this.#running += 1;
    this.#held ??= this.#released.then(async () => await this.#acquire());
    try {
      return await this.#held;
    } catch (error) {
      this.#running -= 1;
      this.#held = undefined;
      throw error;
    }
  }

  async release(): Promise<void> {
    this.#running -= 1;
    if (this.#running > 0) return;
    const held = this.#held;
    this.#held = undefined;
    this.#released = Promise.resolve(held?.then(async (one) => await one.release())).catch(() => {});
    await this.#released;
    if (this.#running === 0) leases.get(this.#place.parts)?.delete(this.#place.session.id);
  }

  async #acquire(): Promise<Hold> {
    const { parts, session } = this.#place;
    const { store } = parts;
    const held = await hold(store, session.id, {
      owner: processOwner(`tools:${parts.newId()}`),
      act: 'run a tool of',
    });
    try {
      await settleLeftovers(store, session.id, held);
      // Calls that a process had begun which died: their outcome is unknown.
      await closeOrphans(store, session.id, { hold: held });
      return held;
    } catch (error) {
      await held.release();
      throw error;
    }
  }
}

const leases = new WeakMap<DeckParts, Map<string, ToolLease>>();

/** The lease of a session that tools of this process share. */
export function leaseOf(place: ToolPlace): ToolLease {
  const { parts, session } = place;
  const known = leases.get(parts) ?? new Map<string, ToolLease>();
  leases.set(parts, known);
  const lease = known.get(session.id) ?? new ToolLease(place);
  known.set(session.id, lease);
  return lease;
}
